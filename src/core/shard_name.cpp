#include "core/shard_name.hpp"

#include <charconv>

#include <fmt/format.h>

namespace ballast {
namespace {

// Takes the digits from the end.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::size_t begin = text.find_last_not_of("0123456789") + 1;
  const std::string_view digits = text.substr(begin);
  std::uint64_t number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc{}) return std::nullopt;
  text.remove_suffix(digits.size());
  return number;
}

bool take(std::string_view& text, std::string_view ending) {
  if (!text.ends_with(ending)) return false;
  text.remove_suffix(ending.size());
  return true;
}

}  // namespace

std::string ShardName::text() const { return fmt::format("{}-{:05}-of-{:05}{}", stem, number, count, ending); }

std::string ShardName::whole() const { return stem + ending; }

std::optional<ShardName> parse_shard_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  std::string_view rest = name.substr(0, dot);
  const auto count = take_number(rest);
  if (!count || !take(rest, "-of-")) return std::nullopt;
  const auto number = take_number(rest);
  if (!number || !take(rest, "-")) return std::nullopt;
  return ShardName{std::string(rest), *number, *count, std::string(name.substr(dot))};
}

std::optional<ShardName> parse_usual_shard_name(std::string_view name) {
  auto shard = parse_shard_name(name);
  const bool is_usual = shard && shard->number >= 1 && shard->number <= shard->count && shard->text() == name;
  return is_usual ? std::move(shard) : std::nullopt;
}

std::string whole_of(std::string_view name) {
  if (name.ends_with(kIndexEnding)) return std::string(name.substr(0, name.size() - kIndexEnding.size()));
  const auto shard = parse_usual_shard_name(name);
  return shard ? shard->whole() : std::string(name);
}

}  // namespace ballast
