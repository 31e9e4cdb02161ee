#include "core/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "core/checked.hpp"

namespace ballast {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  // in bytes; 0 if the bytes are not UTF-8
};

// The well-formed sequences of the Unicode Standard, table 3-7: overlong forms, surrogates and values past U+10FFFF are
// refused by the bounds of the second byte.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {};

  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < size) return {};
  const unsigned char lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < lowest || byte(1) > highest) return {};

  char32_t value = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  return {value, size};
}

struct CodePointRange {
  char32_t first, last;
};

// Code points beyond ASCII that move the cursor, reorder their neighbours or cannot be seen.
constexpr std::array kHidden = {
    CodePointRange{0x80, 0x9F},        // C1 controls: 0x9B alone starts an escape sequence
    CodePointRange{0x00AD, 0x00AD},    // soft hyphen
    CodePointRange{0x061C, 0x061C},    // Arabic letter mark
    CodePointRange{0x115F, 0x1160},    // fillers of Hangul, which look like spaces
    CodePointRange{0x200B, 0x200F},    // zero widths and direction marks
    CodePointRange{0x2028, 0x202E},    // line and paragraph separators, bidirectional embeddings and overrides
    CodePointRange{0x2060, 0x206F},    // word joiner, bidirectional isolates
    CodePointRange{0x2800, 0x2800},    // a Braille pattern without a dot
    CodePointRange{0x3164, 0x3164},    // another filler of Hangul
    CodePointRange{0xFEFF, 0xFEFF},    // byte order mark
    CodePointRange{0xFFA0, 0xFFA0},    // the same, of half the width
    CodePointRange{0xFFF9, 0xFFFB},    // interlinear annotations
    CodePointRange{0xE0000, 0xE007F},  // tags
};

bool is_hidden(char32_t c) {
  return std::ranges::any_of(kHidden, [c](const CodePointRange& range) { return range.first <= c && c <= range.last; });
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// How many bytes from the beginning are ASCII. Nearly all bytes of nearly all headers are.
std::size_t ascii_prefix(std::string_view text) {
  constexpr std::uint64_t kHighs = 0x8080'8080'8080'8080;
  constexpr std::size_t kAtOnce = 8;
  std::array<std::uint64_t, kAtOnce> words;
  std::size_t i = 0;
  for (; i + sizeof words <= text.size(); i += sizeof words) {
    std::memcpy(words.data(), text.data() + i, sizeof words);
    std::uint64_t all = 0;
    for (const std::uint64_t word : words) all |= word;
    if ((all & kHighs) != 0) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

// How many bytes from the beginning are printable ASCII. Nearly all bytes of nearly all names are, so the bytes are
// examined eight at a time.
std::size_t plain_prefix(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101, kHighs = 0x8080'8080'8080'8080;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, sizeof word);
    // The high bit gets set for a byte beyond ASCII, for 0x7F and for a byte below 0x20, and maybe for the bytes above
    // that byte.
    if (((word | (word + kOnes) | (word - kOnes * 0x20)) & kHighs) != 0) break;
  }
  while (i < text.size() && text[i] >= 0x20 && text[i] < 0x7F) ++i;
  return i;
}

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Whether the text could be cut before this byte without splitting a character.
bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string escape_quotes(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Three digits of value / unit, rounded: "1.23", "12.3", "123". Empty if the number needs more digits.
std::string three_digits(std::uint64_t value, std::uint64_t unit) {
  for (const int decimals : {2, 1, 0}) {
    std::string text = fmt::format("{:.{}f}", static_cast<double>(value) / static_cast<double>(unit), decimals);
    if (text.size() <= (decimals == 0 ? 3u : 4u)) return text;
  }
  return {};
}

template <std::size_t N>
std::string scaled(std::uint64_t value, const std::array<std::string_view, N>& names) {
  std::uint64_t unit = 1;
  for (const std::string_view name : names) {
    unit *= 1000;
    if (value / unit >= 1000) continue;
    if (const std::string digits = three_digits(value, unit); !digits.empty())
      return fmt::format("{} {}", digits, name);
  }
  return fmt::format("{} {}", value / unit, names.back());
}

}  // namespace

std::string escape_for_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_escaped(out, text);
  return out;
}

void append_escaped(std::string& out, std::string_view text) {
  for (;;) {
    const std::size_t plain = plain_prefix(text);
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const auto [value, size] = decode(text);
    if (size == 0 || value < 0x20 || value == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (is_hidden(value))
      out += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(value));
    else
      out += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return lower;
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t valid = 0;
  for (;;) {
    valid += ascii_prefix(text.substr(valid));
    if (valid == text.size()) return valid;
    const std::size_t size = decode(text.substr(valid)).size;
    if (size == 0) return valid;
    valid += size;
  }
}

std::string quote(std::string_view name) {
  constexpr std::size_t kLongest = 120, kHead = 70, kTail = 46;
  if (name.size() <= kLongest) return fmt::format("\"{}\"", escape_for_terminal(escape_quotes(name)));

  // A cut moves at most three steps to the next character, so that a megabyte of continuation bytes is still cut.
  std::size_t head = kHead, tail = name.size() - kTail;
  while (head > kHead - 3 && !starts_character(name[head])) --head;
  while (tail < name.size() - kTail + 3 && !starts_character(name[tail])) ++tail;
  return fmt::format("\"{}…{}\" ({} bytes)", escape_for_terminal(escape_quotes(name.substr(0, head))),
                     escape_for_terminal(escape_quotes(name.substr(tail))), name.size());
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  return bytes < 1000 ? fmt::format("{} B", bytes) : scaled(bytes, kUnits);
}

std::string format_count(std::uint64_t count) {
  static constexpr std::array<std::string_view, 4> kUnits = {"k", "M", "B", "T"};
  if (count < 1000) return std::to_string(count);
  if (count < 1'000'000) return fmt::format("{} {:03}", count / 1000, count % 1000);
  return scaled(count, kUnits);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr std::array kUnits = {
      Unit{"", 1},
      Unit{"b", 1},
      Unit{"kb", 1'000},
      Unit{"mb", 1'000'000},
      Unit{"gb", 1'000'000'000},
      Unit{"tb", 1'000'000'000'000},
      Unit{"kib", std::uint64_t{1} << 10},
      Unit{"mib", std::uint64_t{1} << 20},
      Unit{"gib", std::uint64_t{1} << 30},
      Unit{"tib", std::uint64_t{1} << 40},
  };
  // Six decimals of the largest unit can still be multiplied in 64 bits.
  constexpr std::uint64_t kFinest = 1'000'000;

  const auto take_digit = [&text]() -> std::optional<std::uint64_t> {
    if (text.empty() || !is_digit(text.front())) return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
    return digit;
  };

  std::optional<std::uint64_t> whole = take_digit();
  if (!whole) return std::nullopt;
  while (const auto digit = take_digit()) {
    whole = checked_mul(*whole, 10);
    if (whole) whole = checked_add(*whole, *digit);
    if (!whole) return std::nullopt;
  }

  std::uint64_t fraction = 0, one = 1;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    while (const auto digit = take_digit()) {
      if (one == kFinest) return std::nullopt;
      fraction = fraction * 10 + *digit;
      one *= 10;
    }
    if (one == 1) return std::nullopt;
  }

  if (text.starts_with(' ')) text.remove_prefix(1);
  std::string unit_name(text);
  std::ranges::transform(unit_name, unit_name.begin(), to_lower);
  const auto* unit = std::ranges::find(kUnits, unit_name, &Unit::name);
  if (unit == kUnits.end()) return std::nullopt;

  const auto bytes = checked_mul(*whole, unit->bytes);
  return bytes ? checked_add(*bytes, fraction * unit->bytes / one) : std::nullopt;
}

}  // namespace ballast
