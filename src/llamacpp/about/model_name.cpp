#include "llamacpp/about/model_name.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "llamacpp/keys/metadata_values.hpp"

namespace ballast::llamacpp {
namespace {

bool is_name_digit(char c) { return c >= '0' && c <= '9'; }
bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_large_letter(char c) { return c >= 'A' && c <= 'Z'; }
// Characters that are not ASCII count as letters without case.
bool is_name_letter(char c) {
  return is_small_letter(c) || is_large_letter(c) || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }
char to_large_letter(char c) { return is_small_letter(c) ? static_cast<char>(c - ('a' - 'A')) : c; }
char to_small_letter(char c) { return is_large_letter(c) ? static_cast<char>(c + ('a' - 'A')) : c; }

// How many digits the text begins with.
std::size_t digits_before(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_name_digit) - text.begin());
}

// Takes digits off the text, and says whether there were some.
bool take_digits(std::string_view& text) {
  const std::size_t count = digits_before(text);
  text.remove_prefix(count);
  return count > 0;
}

// 1, 1.0, 1.0.2
bool is_dotted_number(std::string_view text) {
  while (take_digits(text)) {
    if (text.empty()) return true;
    if (text[0] != '.') return false;
    text.remove_prefix(1);
  }
  return false;
}

// v0.1, iter3, 2.5
bool is_version(std::string_view part) {
  const std::string lower = lower_case(part);
  const std::string_view text = lower;
  if (text.starts_with('v')) return is_dotted_number(text.substr(1));
  return is_dotted_number(text.starts_with("iter") ? text.substr(4) : text);
}

// q4_k, iq2_x_s, bf16, fp32, f16
bool is_quantization(std::string_view part) {
  const std::string lower = lower_case(part);
  std::string_view text = lower;
  for (const std::string_view type : {"f16", "f32", "fp16", "fp32", "bf16", "bf32", "bfp16", "bfp32"}) {
    if (text == type) return true;
  }
  if (text.starts_with('i')) text.remove_prefix(1);
  if (text.size() < 2 || text[0] != 'q' || !is_name_digit(text[1])) return false;
  text.remove_prefix(2);
  for (; !text.empty(); text.remove_prefix(2)) {
    const bool is_word = text.size() > 1 && (is_name_digit(text[1]) || is_name_letter(text[1]) || text[1] == '_');
    if (text[0] != '_' || !is_word) return false;
  }
  return true;
}

// 7B, 0.5b, 1_5B, 8x7B, A3B, 7b1, small
bool is_size(std::string_view part) {
  const std::string lower = lower_case(part);
  std::string_view text = lower;
  for (const std::string_view word : {"small", "mini", "medium", "large", "xl", "xxl"}) {
    if (text == word) return true;
  }
  if (text.starts_with('a')) {
    text.remove_prefix(1);
  } else if (const std::size_t count = digits_before(text); count > 0 && text.substr(count).starts_with('x')) {
    text.remove_prefix(count + 1);
  }
  if (!take_digits(text)) return false;
  if (text.starts_with('.') || text.starts_with('_')) {
    text.remove_prefix(1);
    if (!take_digits(text)) return false;
  }
  constexpr std::string_view kUnits = "kmbt";
  if (text.empty() || kUnits.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return text.empty() || (text.size() == 1 && is_name_digit(text[0]));
}

bool is_finetuning(std::string_view part) {
  const std::string lower = lower_case(part);
  return lower == "chat" || lower == "instruct" || lower == "vision" || lower == "lora";
}

// The number of parameters that a size says; nothing for "8x7B", "A3B", "small".
std::optional<double> parameters_of_size(std::string_view size) {
  double number = 0;
  const char* end = size.data() + size.size() - 1;
  const auto [stop, failed] = std::from_chars(size.data(), end, number, std::chars_format::fixed);
  if (failed != std::errc() || stop != end) return std::nullopt;
  constexpr std::string_view kUnits = "KMBT";
  double unit = 1;
  for (std::size_t i = 0; i <= kUnits.find(size.back()) && i < kUnits.size(); ++i) unit *= 1000;
  return number * unit;
}

bool is_far_from(double said, std::uint64_t parameters) {
  const auto exact = static_cast<double>(parameters);
  const std::uint64_t most = parameters / 8 * 7 + parameters % 8 * 7 / 8;
  return std::abs(said - exact) > static_cast<double>(most);
}

struct NamePart {
  std::string text;
  bool is_basename = false, is_size = false, is_finetune = false, is_version = false, is_type = false;

  bool has_no_kind() const { return !is_basename && !is_size && !is_finetune && !is_version && !is_type; }
};

// "0_5b" is 0.5B, and "7b1" is 7.1B.
std::string normal_size(std::string_view part) {
  std::string size(part);
  std::ranges::replace(size, '_', '.');
  if (is_name_digit(size.back())) {
    const char unit = size[size.size() - 2], decimal = size.back();
    size.resize(size.size() - 2);
    size += {'.', decimal, unit};
  }
  if (size.size() > 1 && is_name_digit(size[size.size() - 2])) size.back() = to_large_letter(size.back());
  return size;
}

void tell_size(NamePart& part, std::uint64_t parameters) {
  part.text = normal_size(part.text);
  const auto said = parameters_of_size(part.text);
  if (parameters != 0 && said && is_far_from(*said, parameters)) {
    part.is_finetune = true;
    part.text.back() = to_small_letter(part.text.back());
  } else {
    part.is_size = true;
  }
}

void tell_kind(NamePart& part, bool is_first, std::uint64_t parameters) {
  if (is_version(part.text)) {
    part.is_version = true;
  } else if (is_quantization(part.text)) {
    part.is_type = true;
    std::ranges::transform(part.text, part.text.begin(), to_large_letter);
  } else if (!is_first && is_size(part.text)) {
    tell_size(part, parameters);
  } else if (!is_first && is_finetuning(part.text)) {
    part.is_finetune = true;
  }
}

// "mini" says nothing beside "4B".
void drop_words_beside_numbers(std::vector<NamePart>& parts) {
  const auto has_digit = [](const NamePart& part) {
    return part.is_size && std::ranges::any_of(part.text, is_name_digit);
  };
  if (std::ranges::none_of(parts, has_digit)) return;
  for (NamePart& part : parts) part.is_size = part.is_size && !std::ranges::all_of(part.text, is_name_letter);
}

// The basename is what comes first, without versions at its end. What nothing is known about is fine-tuning.
void find_basename(std::vector<NamePart>& parts) {
  bool is_at_start = true;
  for (NamePart& part : parts) {
    const bool has_no_kind = part.has_no_kind();
    is_at_start = is_at_start && ((has_no_kind && is_name_letter(part.text[0])) || part.is_version);
    if (is_at_start) part.is_basename = true;
    if (!is_at_start && has_no_kind) part.is_finetune = true;
  }
  for (auto part = parts.rbegin(); part != parts.rend() && part->is_basename && part->is_version; ++part) {
    part->is_basename = false;
  }
}

template <class Is>
std::optional<std::string> joined_parts(std::span<const NamePart> parts, Is is) {
  std::string all;
  for (const NamePart& part : parts) {
    if (is(part)) all += (all.empty() ? "" : "-") + part.text;
  }
  return all.empty() ? std::nullopt : std::optional(all);
}

std::vector<NamePart> parts_of_name(std::string_view name, std::uint64_t parameters) {
  std::vector<NamePart> parts;
  while (!name.empty()) {
    const std::size_t end = name.find('-');
    if (end != 0) parts.push_back({std::string(name.substr(0, end))});
    name = end == std::string_view::npos ? std::string_view() : name.substr(end + 1);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) tell_kind(parts[i], i == 0, parameters);
  drop_words_beside_numbers(parts);
  find_basename(parts);
  return parts;
}

// A size that is said twice counts once.
void drop_repeated_sizes(std::vector<NamePart>& parts) {
  std::vector<std::string_view> seen;
  for (NamePart& part : parts) {
    if (!part.is_size) continue;
    const bool is_repeated = std::ranges::find(seen, part.text) != seen.end();
    if (is_repeated) part.is_size = false;
    if (!is_repeated) seen.push_back(part.text);
  }
}

std::string title_of_word(std::string_view word) {
  const bool has_small = std::ranges::any_of(word, is_small_letter);
  const bool stays = !has_small || std::ranges::any_of(word, is_large_letter) || is_name_digit(word[0]) ||
                     (word[0] == 'v' && is_dotted_number(word.substr(1)));
  std::string title(word);
  if (stays) return title;
  bool is_in_word = false;
  for (char& c : title) {
    const bool begins_word = !is_in_word && is_name_letter(c);
    is_in_word = is_name_letter(c);
    if (begins_word) c = to_large_letter(c);
  }
  return title;
}

}  // namespace

ModelNameParts split_model_name(std::string_view id, std::uint64_t parameters) {
  ModelNameParts found;
  if (id.find(' ') != std::string_view::npos) {  // a sentence
    found.name = id;
    return found;
  }
  if (const std::size_t slash = id.find('/'); slash != std::string_view::npos) {
    if (id[0] != '.') found.organization = id.substr(0, slash);
    id.remove_prefix(slash + 1);
  }
  found.name = id;

  std::vector<NamePart> parts = parts_of_name(id, parameters);
  found.finetune = joined_parts(parts, [](const NamePart& part) { return part.is_finetune; });
  found.version = joined_parts(parts, [](const NamePart& part) { return part.is_version && !part.is_basename; });
  found.basename = joined_parts(parts, [](const NamePart& part) { return part.is_basename; });
  drop_repeated_sizes(parts);
  found.size_label = joined_parts(parts, [](const NamePart& part) { return part.is_size; });
  if (!found.size_label && !found.finetune && !found.version) found.basename.reset();
  return found;
}

std::string title_of_id(std::string_view id) {
  std::string title;
  std::size_t at = 0;
  const auto separates = [](char c) { return c == '-' || is_name_blank(c); };
  while (at < id.size()) {
    const std::string_view rest = id.substr(at);
    const auto length = static_cast<std::size_t>(std::ranges::find_if(rest, separates) - rest.begin());
    if (length > 0) title += (title.empty() ? "" : " ") + title_of_word(rest.substr(0, length));
    at += length + 1;
  }
  return title;
}

std::string rounded_parameter_count(std::uint64_t count) {
  struct Unit {
    double least, factor;
    char letter;
  };
  constexpr Unit kUnits[] = {{1e12, 1e-12, 'T'}, {1e9, 1e-9, 'B'}, {1e6, 1e-6, 'M'}, {-1, 1e-3, 'K'}};
  const auto number = static_cast<double>(count);
  const auto* unit = std::ranges::find_if(kUnits, [&](const Unit& of) { return number > of.least; });
  const double scaled = number * unit->factor;
  // One decimal below ten, and two below one half, which rounds to no digit at all.
  const double whole = std::nearbyint(scaled);
  const int decimals = whole >= 10 ? 0 : whole >= 1 ? 1 : 2;
  return fmt::format("{:.{}f}{}", scaled, decimals, unit->letter);
}

}  // namespace ballast::llamacpp
