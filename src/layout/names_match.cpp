#include "layout/names_match.hpp"

#include <algorithm>
#include <charconv>

namespace ballast::names {
namespace {

constexpr std::string_view kBlock = "{}";
constexpr std::size_t kMostDigits = 9;  // digits of a block's number

// The part of a name where the pattern has {}; empty for a pattern without it.
std::optional<std::string_view> block_in(std::string_view pattern, std::string_view name) {
  const std::size_t at = pattern.find(kBlock);
  if (at == std::string_view::npos) return name == pattern ? std::optional(std::string_view()) : std::nullopt;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + kBlock.size());
  if (name.size() <= before.size() + after.size()) return std::nullopt;
  if (!name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  const std::string_view block = name.substr(at, name.size() - before.size() - after.size());
  const bool is_number = block.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number && block.size() <= kMostDigits ? std::optional(block) : std::nullopt;
}

std::string with_block(std::string_view pattern, std::string_view block) {
  std::string name(pattern);
  if (const std::size_t at = name.find(kBlock); at != std::string::npos) name.replace(at, kBlock.size(), block);
  return name;
}

// A norm's bias is not a difference from 1, and a bias cannot be transposed: only reordering applies to biases, too.
Change change_of(const Row& row, std::string_view suffix) {
  const bool is_of_rows = row.change == Change::permute_queries || row.change == Change::permute_keys;
  return suffix == ".weight" || is_of_rows ? row.change : Change::none;
}

std::optional<Match> match_row(const Architecture& architecture, NameStyle style, std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view module = name.substr(0, dot), suffix = name.substr(dot);
  if (suffix != ".weight" && suffix != ".bias") return std::nullopt;

  const bool to_gguf = style == NameStyle::gguf;
  for (const Row& row : architecture.rows) {
    const auto block = block_in(to_gguf ? row.huggingface : row.gguf, module);
    if (!block) continue;
    Match found{with_block(to_gguf ? row.gguf : row.huggingface, *block).append(suffix), change_of(row, suffix)};
    std::from_chars(block->data(), block->data() + block->size(), found.block);
    return found;
  }
  return std::nullopt;
}

std::optional<Match> match_usual(const Architecture& architecture, NameStyle style, std::string_view name) {
  const auto is_it = [&](std::string_view pattern) { return block_in(pattern, name).has_value(); };
  if (style == NameStyle::gguf && std::any_of(architecture.left_out.begin(), architecture.left_out.end(), is_it))
    return Match{.name = {}, .is_left_out = true};
  return match_row(architecture, style, name);
}

}  // namespace

const Architecture* find_architecture(std::string_view name) noexcept {
  const auto* found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                   [&](const Architecture& a) { return a.name == name; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::string_view architecture_in(const Checkpoint& checkpoint) noexcept {
  constexpr std::string_view kKey = "general.architecture";
  if (const auto said = checkpoint.typed_metadata.find_string(kKey)) return *said;
  const auto entry = checkpoint.metadata.find(kKey);
  return entry == checkpoint.metadata.end() ? std::string_view() : std::string_view(entry->second);
}

const Architecture* find_architecture(const Checkpoint& checkpoint, const NameOptions& options) noexcept {
  return find_architecture(options.architecture.empty() ? architecture_in(checkpoint) : options.architecture);
}

std::optional<Match> match(const Architecture& architecture, NameStyle style, std::string_view name) {
  if (auto found = match_usual(architecture, style, name); found || style == NameStyle::huggingface) return found;
  for (const Prefix& prefix : architecture.prefixes) {
    if (!name.starts_with(prefix.found)) continue;
    const std::string usual = std::string(prefix.usual).append(name.substr(prefix.found.size()));
    if (auto found = match_usual(architecture, style, usual)) return found;
  }
  return std::nullopt;
}

}  // namespace ballast::names
