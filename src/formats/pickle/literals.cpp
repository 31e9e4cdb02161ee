#include "formats/pickle/literals.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#include "core/text.hpp"

namespace ballast::pickle {
namespace {

constexpr std::string_view kWhitespace = " \t\n\r\v\f";

std::string_view strip(std::string_view text) {
  const auto first = text.find_first_not_of(kWhitespace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhitespace) - first + 1);
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// Takes the prefix off and returns the base that it means.
int take_base(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char mark = static_cast<char>(digits[1] | 0x20);
  const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (base == 0) return 8;
  digits.remove_prefix(2);
  if (digits.starts_with('_')) digits.remove_prefix(1);
  return base;
}

// Takes digits of one base with single underscores between them. Returns them without underscores and leading zeros.
std::optional<std::string> plain_digits(std::string_view digits, int base) {
  std::string plain;
  bool after_digit = false;
  for (const char c : digits) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    if (digit_value(c) >= base) return std::nullopt;
    after_digit = true;
    if (c != '0' || !plain.empty()) plain += c;
  }
  if (!after_digit) return std::nullopt;
  return plain.empty() ? "0" : plain;
}

// Converts base 2^32 to base 10^9 by repeated division; `magnitude` is used up.
std::string decimal_digits(std::vector<std::uint32_t>& magnitude, bool negative) {
  constexpr std::uint64_t kChunk = 1'000'000'000;
  std::string reversed;
  while (!magnitude.empty()) {
    std::uint64_t rest = 0;
    for (std::size_t i = magnitude.size(); i-- > 0;) {
      rest = rest << 32 | magnitude[i];
      magnitude[i] = static_cast<std::uint32_t>(rest / kChunk);
      rest %= kChunk;
    }
    while (!magnitude.empty() && magnitude.back() == 0) magnitude.pop_back();
    for (int i = 0; i < 9 && (rest != 0 || !magnitude.empty()); ++i, rest /= 10)
      reversed += static_cast<char>('0' + rest % 10);
  }
  if (negative) reversed += '-';
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

// A number that is not near any double: infinite or zero, by the power of ten of its first digit.
double beyond_doubles(std::string_view text) {
  const double sign = text.starts_with('-') ? -1 : 1;
  const auto e = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, e);
  const auto first = mantissa.find_first_of("123456789");
  const auto point = std::min(mantissa.find('.'), mantissa.size());
  if (first == std::string_view::npos) return sign * 0.0;
  std::int64_t power = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (e != std::string_view::npos) {
    const bool small = e + 1 < text.size() && text[e + 1] == '-';
    const std::string_view digits = text.substr(text.find_first_of("0123456789", e));
    std::int64_t exponent = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc()) exponent = std::numeric_limits<std::int32_t>::max();
    exponent = std::min<std::int64_t>(exponent, std::int64_t{1} << 40);
    power += small ? -exponent : exponent;
  }
  return power > 0 ? sign * std::numeric_limits<double>::infinity() : sign * 0.0;
}

// Exactly `count` hexadecimal digits at `at`, which is not behind the end, or nothing.
std::optional<std::uint32_t> hex_at(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() - at < count) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(at, count)) {
    if (digit_value(c) >= 16) return std::nullopt;
    value = value << 4 | static_cast<std::uint32_t>(digit_value(c));
  }
  return value;
}

// Reads one to three octal digits at `at`, which moves past them. A value that does not fit a byte wraps, as in Python.
char take_octal(std::string_view text, std::size_t& at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 3 && at < text.size() && digit_value(text[at]) < 8; ++i)
    value = value << 3 | static_cast<std::uint32_t>(digit_value(text[at++]));
  return static_cast<char>(value & 0xFF);
}

}  // namespace

std::optional<Integer> parse_integer(std::string_view text, int base) {
  std::string_view digits = strip(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (base == 0) base = take_base(digits);
  const auto plain = plain_digits(digits, base);
  if (!plain) return std::nullopt;
  std::string spelled = negative ? "-" + *plain : *plain;

  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value, base);
  if (error == std::errc()) return Integer(value);
  if (base != 10) return std::nullopt;
  return Integer(std::move(spelled));
}

Integer integer_from_twos_complement(std::span<const std::byte> bytes) {
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{};
  const std::byte fill = negative ? std::byte{0xFF} : std::byte{0};
  std::size_t size = bytes.size();
  while (size > 8 && bytes[size - 1] == fill) --size;
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint64_t>(i < bytes.size() ? bytes[i] : fill); };

  // If the sign bit of eight bytes is the sign of the number, the bytes are the number.
  if (size <= 8 && (at(7) >> 7 != 0) == negative) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value |= at(i) << (8 * i);
    return static_cast<std::int64_t>(value);
  }
  std::vector<std::uint32_t> magnitude(size / 4 + 1);
  std::uint64_t carry = negative ? 1 : 0;
  for (std::size_t i = 0; i < magnitude.size(); ++i) {
    std::uint32_t limb = 0;
    for (std::size_t j = 0; j < 4; ++j) limb |= static_cast<std::uint32_t>(at(4 * i + j) << (8 * j));
    carry += negative ? static_cast<std::uint32_t>(~limb) : limb;
    magnitude[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  while (!magnitude.empty() && magnitude.back() == 0) magnitude.pop_back();
  return decimal_digits(magnitude, negative);
}

std::optional<double> parse_real(std::string_view text) {
  text = strip(text);
  // from_chars takes no plus, and takes "nan(1)" as C does.
  if (text.find('(') != std::string_view::npos || text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc::result_out_of_range ? beyond_doubles(text) : value;
}

std::optional<std::string> unescape_bytes(std::string_view text) {
  static constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      out += text[at++];
      continue;
    }
    if (++at == text.size()) return std::nullopt;
    const char c = text[at];
    if (const auto letter = kLetters.find(c); letter != std::string_view::npos) {
      out += kMeanings[letter];
      ++at;
    } else if (c == 'x') {
      const auto byte = hex_at(text, at + 1, 2);
      if (!byte) return std::nullopt;
      out += static_cast<char>(*byte);
      at += 3;
    } else if (digit_value(c) < 8) {
      out += take_octal(text, at);
    } else {  // not an escape: both characters stand for themselves
      out += '\\';
      out += c;
      ++at;
    }
  }
  return out;
}

std::optional<std::string> unescape_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    append_utf8(out, static_cast<unsigned char>(text[at]));
    if (text[at] != '\\' || at + 1 == text.size()) continue;
    const char kind = text[++at];
    if (kind != 'u' && kind != 'U') {
      append_utf8(out, static_cast<unsigned char>(kind));
      continue;
    }
    const std::size_t digits = kind == 'u' ? 4 : 8;
    const auto code_point = hex_at(text, at + 1, digits);
    if (!code_point || *code_point > 0x10FFFF) return std::nullopt;
    out.pop_back();  // the backslash
    append_utf8(out, *code_point);
    at += digits;
  }
  return out;
}

bool is_text(std::string_view bytes) {
  while (true) {
    const bool ascii = std::all_of(bytes.begin(), bytes.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
    if (ascii) return true;
    bytes.remove_prefix(valid_utf8_prefix(bytes));
    if (bytes.empty()) return true;
    // ED A0..BF 80..BF is a surrogate.
    const auto in_range = [&](std::size_t i, unsigned from) {
      return static_cast<unsigned char>(bytes[i]) >= from && static_cast<unsigned char>(bytes[i]) <= 0xBF;
    };
    if (bytes.size() < 3 || bytes[0] != '\xED' || !in_range(1, 0xA0) || !in_range(2, 0x80)) return false;
    bytes.remove_prefix(3);
  }
}

void append_utf8(std::string& text, std::uint32_t code_point) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xC0 | code_point >> 6);
    tail(0);
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xE0 | code_point >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | code_point >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace ballast::pickle
