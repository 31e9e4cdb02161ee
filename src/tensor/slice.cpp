#include <ballast/error.hpp>
#include <ballast/slice.hpp>

#include <charconv>
#include <string>

#include "core/text.hpp"

namespace ballast {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Error bad(std::string_view part) {
  return Error(Errc::invalid_argument, quote(part) + " is no slice")
      .hint("write integers, ranges and ... as Python does: 0:4, ..., -1, ::2");
}

std::int64_t parse_integer(std::string_view text, std::string_view part) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw bad(part);
  return value;
}

SliceIndex parse_one(std::string_view part) {
  if (part == "...") return SliceIndex::ellipsis();
  std::optional<std::int64_t> fields[3];
  std::size_t count = 0;
  for (std::string_view rest = part;; ++count) {
    if (count == 3) throw bad(part);
    const auto colon = rest.find(':');
    const auto field = trim(rest.substr(0, colon));
    if (!field.empty()) fields[count] = parse_integer(field, part);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (count == 0) {
    if (!fields[0]) throw bad(part);
    return SliceIndex::at(*fields[0]);
  }
  const std::int64_t step = fields[2].value_or(1);
  if (step == 0) throw bad(part);
  return SliceIndex::range(fields[0], fields[1], step);
}

}  // namespace

Slice parse_slice(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = trim(text.substr(1, text.size() - 2));
  Slice slice;
  if (text.empty()) return slice;
  for (;;) {
    const auto comma = text.find(',');
    slice.push_back(parse_one(trim(text.substr(0, comma))));
    if (comma == std::string_view::npos) return slice;
    text.remove_prefix(comma + 1);
    if (trim(text).empty()) return slice;  // Python allows a comma at the end
  }
}

}  // namespace ballast
