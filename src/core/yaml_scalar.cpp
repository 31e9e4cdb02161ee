#include "core/yaml_scalar.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <ballast/error.hpp>

namespace ballast {
namespace {

struct YamlWord {
  std::string_view text;
  bool value;
};
constexpr YamlWord kYamlBooleans[] = {
    {"yes", true},  {"Yes", true},  {"YES", true},  {"true", true},   {"True", true},   {"TRUE", true},
    {"on", true},   {"On", true},   {"ON", true},   {"no", false},    {"No", false},    {"NO", false},
    {"off", false}, {"Off", false}, {"OFF", false}, {"false", false}, {"False", false}, {"FALSE", false},
};
constexpr std::string_view kYamlNulls[] = {"", "~", "null", "Null", "NULL"};

bool all_in(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

std::string without_underscores(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

std::optional<std::uint64_t> digits_in_base(std::string_view text, int base) {
  const std::string digits = without_underscores(text);
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// The digits of an integer without its sign: 0b1, 017, 0x1F, 12.
std::optional<std::uint64_t> yaml_magnitude(std::string_view text) {
  if (text.starts_with("0b") && text.size() > 2 && all_in(text.substr(2), "01_"))
    return digits_in_base(text.substr(2), 2);
  if (text.starts_with("0x") && text.size() > 2 && all_in(text.substr(2), "0123456789abcdefABCDEF_")) {
    return digits_in_base(text.substr(2), 16);
  }
  if (text == "0") return 0;
  if (text.starts_with('0')) return all_in(text, "01234567_") ? digits_in_base(text.substr(1), 8) : std::nullopt;
  if (text.empty() || text[0] < '1' || text[0] > '9' || !all_in(text, "0123456789_")) return std::nullopt;
  return digits_in_base(text, 10);
}

std::optional<Json> yaml_integer(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const auto magnitude = yaml_magnitude(is_negative || text.starts_with('+') ? text.substr(1) : text);
  if (!magnitude) return std::nullopt;
  if (!is_negative) return Json(*magnitude);
  if (*magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return Json(-static_cast<std::int64_t>(*magnitude));
}

// 90:30 is 90 · 60 + 30; every part but the first is below 60, and the last may have a fraction.
std::optional<Json> yaml_sexagesimal(std::string_view text) {
  if (text.find(':') == std::string_view::npos || text.size() > 40) return std::nullopt;
  const bool is_negative = text.starts_with('-');
  std::string_view rest = is_negative || text.starts_with('+') ? text.substr(1) : text;
  const std::size_t point = rest.find('.');
  const std::string_view fraction = point == std::string_view::npos ? std::string_view() : rest.substr(point);
  rest = rest.substr(0, point);

  double value = 0;
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::size_t end = rest.find(':');
    const std::string part = without_underscores(rest.substr(0, end));
    const bool has_digits = !part.empty() && all_in(part, "0123456789") && (is_first || part.size() <= 2);
    if (!has_digits || (!is_first && part.size() == 2 && part[0] > '5')) return std::nullopt;
    if (is_first && fraction.empty() && part[0] == '0') return std::nullopt;
    double number = 0;
    std::from_chars(part.data(), part.data() + part.size(), number);
    value = value * 60 + number;
    if (end == std::string_view::npos) break;
    rest = rest.substr(end + 1);
    if (rest.empty()) return std::nullopt;
  }
  if (fraction.size() > 1 && !all_in(fraction.substr(1), "0123456789_")) return std::nullopt;
  const std::string decimals = "0" + without_underscores(fraction);
  double part = 0;
  std::from_chars(decimals.data(), decimals.data() + decimals.size(), part);
  value = is_negative ? -(value + part) : value + part;
  if (!fraction.empty()) return Json(value);
  return std::abs(value) < 9e15 ? std::optional(Json(static_cast<std::int64_t>(value))) : std::nullopt;
}

// A float has a point, and its exponent a sign.
std::optional<Json> yaml_float(std::string_view text) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const double sign = text.starts_with('-') ? -1 : 1;
  const std::string_view rest = has_sign ? text.substr(1) : text;
  if (rest == ".inf" || rest == ".Inf" || rest == ".INF") return Json(sign * std::numeric_limits<double>::infinity());
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return Json(std::numeric_limits<double>::quiet_NaN());

  const std::size_t point = rest.find('.');
  if (point == std::string_view::npos || (point == 0 && has_sign)) return std::nullopt;
  const std::size_t exponent = rest.find_first_of("eE");
  const std::string_view whole = rest.substr(0, point);
  const std::string_view decimals = exponent == std::string_view::npos ? rest.substr(point + 1)
                                    : exponent < point                 ? std::string_view("x")
                                                                       : rest.substr(point + 1, exponent - point - 1);
  if (!all_in(whole, "0123456789_") || whole.starts_with('_') || !all_in(decimals, "0123456789_")) return std::nullopt;
  if (whole.empty() && (decimals.empty() || decimals[0] == '_')) return std::nullopt;
  if (exponent != std::string_view::npos) {
    const std::string_view power = rest.substr(exponent + 1);
    if (power.size() < 2 || (power[0] != '-' && power[0] != '+') || !all_in(power.substr(1), "0123456789")) {
      return std::nullopt;
    }
  }
  std::string digits = without_underscores(rest);
  std::erase(digits, '+');
  double value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return Json(sign * value);
}

void append_code_point(std::string& out, std::uint32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    throw Error(Errc::malformed, "an escape is not a character of Unicode");
  }
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace

Json resolve_plain_scalar(std::string_view text) {
  if (std::ranges::find(kYamlNulls, text) != std::end(kYamlNulls)) return {};
  const auto* word = std::ranges::find(kYamlBooleans, text, &YamlWord::text);
  if (word != std::end(kYamlBooleans)) return word->value;
  if (!all_in(text.substr(0, 1), "0123456789+-.")) return text;
  if (const auto value = yaml_integer(text)) return *value;
  if (const auto value = yaml_sexagesimal(text)) return *value;
  if (const auto value = yaml_float(text)) return *value;
  return text;
}

std::size_t append_yaml_escape(std::string& out, std::string_view line, std::size_t at) {
  struct Escape {
    char name;
    std::string_view text;
  };
  using namespace std::string_view_literals;
  constexpr Escape kEscapes[] = {
      {'0', "\0"sv}, {'a', "\a"},  {'b', "\b"},     {'t', "\t"},     {'\t', "\t"},    {'n', "\n"},
      {'v', "\v"},   {'f', "\f"},  {'r', "\r"},     {'e', "\x1b"},   {' ', " "},      {'"', "\""},
      {'/', "/"},    {'\\', "\\"}, {'N', "\u0085"}, {'_', "\u00a0"}, {'L', "\u2028"}, {'P', "\u2029"},
  };
  if (at >= line.size()) throw Error(Errc::malformed, "a backslash with nothing behind it");
  const auto* found = std::ranges::find(kEscapes, line[at], &Escape::name);
  if (found != std::end(kEscapes)) {
    out += found->text;
    return at + 1;
  }
  const std::size_t digits = line[at] == 'x' ? 2 : line[at] == 'u' ? 4 : line[at] == 'U' ? 8 : 0;
  std::uint32_t code = 0;
  const char* begin = line.data() + at + 1;
  if (digits == 0 || line.size() - at - 1 < digits ||
      std::from_chars(begin, begin + digits, code, 16).ptr != begin + digits) {
    throw Error(Errc::malformed, "an escape that YAML does not have");
  }
  append_code_point(out, code);
  return at + 1 + digits;
}

BlockScalarStyle read_block_style(std::string_view head) {
  BlockScalarStyle style;
  style.is_folded = head[0] == '>';
  std::size_t at = 1;
  for (; at < head.size() && head[at] != ' ' && head[at] != '\t'; ++at) {
    const char c = head[at];
    if ((c == '-' || c == '+') && style.chomping == ' ') {
      style.chomping = c;
    } else if (c >= '1' && c <= '9' && style.indent == 0) {
      style.indent = static_cast<std::size_t>(c - '0');
    } else {
      throw Error(Errc::malformed, "the head of a block of text says what YAML does not know");
    }
  }
  const std::string_view rest = head.substr(at);
  const std::size_t comment = rest.find_first_not_of(" \t");
  if (comment != std::string_view::npos && rest[comment] != '#') {
    throw Error(Errc::malformed, "something follows the head of a block of text");
  }
  return style;
}

std::string join_block_scalar(const BlockScalarStyle& style, std::span<const std::string_view> lines) {
  std::size_t count = lines.size();
  while (count > 0 && lines[count - 1].empty()) --count;

  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += lines[i];
    std::size_t next = i + 1;
    while (next < count && lines[next].empty()) ++next;
    if (next == count) break;
    // Two lines that begin at the same place are one, if the block is folded.
    const auto begins_plainly = [](std::string_view line) {
      return line.empty() || (line[0] != ' ' && line[0] != '\t');
    };
    const bool folds = style.is_folded && begins_plainly(lines[i]) && begins_plainly(lines[next]) && !lines[i].empty();
    if (folds && next == i + 1) {
      text += ' ';
    } else {
      text.append(next - i - (folds ? 1 : 0), '\n');
    }
    i = next - 1;
  }
  if (style.chomping == '-') return text;
  if (count > 0) text += '\n';
  if (style.chomping == '+') text.append(lines.size() - count, '\n');
  return text;
}

std::string_view trimmed_right(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t");
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

}  // namespace ballast
