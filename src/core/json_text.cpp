#include "core/json_text.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <utility>

#include "core/name_hash.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto push = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return push(code);
  if (code < 0x800) {
    push(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    push(0xE0 | code >> 12);
    push(0x80 | (code >> 6 & 0x3F));
  } else {
    push(0xF0 | code >> 18);
    push(0x80 | (code >> 12 & 0x3F));
    push(0x80 | (code >> 6 & 0x3F));
  }
  push(0x80 | (code & 0x3F));
}

// Says of a number that does not fit a double whether it is too large (true) or too near to zero (false).
bool is_huge(std::string_view number) {
  const std::string_view digits = number.substr(0, number.find_first_of("eE"));
  const auto first = static_cast<std::ptrdiff_t>(digits.find_first_of("123456789"));
  const auto point = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), digits.size()));
  std::string_view exponent = number.substr(std::min(digits.size() + 1, number.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::ptrdiff_t power = 0;
  const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (error == std::errc::result_out_of_range) return !exponent.starts_with('-');
  return point - first + power > 0;
}

}  // namespace

std::uint64_t KeysOfObject::add(std::string_view key) {
  const std::uint64_t hash = hash_name(key);
  if (has_one_twice_) return hash;  // one duplicate is enough: nobody asks for more
  if (count_ + 1 > slots_.size() / 4 * 3) grow();
  std::size_t i = hash & (slots_.size() - 1);
  while (slots_[i] != 0 && slots_[i] != hash) i = (i + 1) & (slots_.size() - 1);
  has_one_twice_ = slots_[i] == hash;
  slots_[i] = hash;
  ++count_;
  return hash;
}

// Grows quickly at first, later only so fast that the slots take less than four times the bytes of the text.
void KeysOfObject::grow() {
  constexpr std::size_t kFew = std::size_t{1} << 20;
  resize(slots_.size() < kFew ? std::max<std::size_t>(16, slots_.size() * 4) : slots_.size() * 2);
}

void KeysOfObject::reserve(std::size_t count) {
  if (count > slots_.size() / 2) resize(std::bit_ceil(2 * count + 16));
}

void KeysOfObject::resize(std::size_t slot_count) {
  const std::vector<std::uint64_t> old = std::exchange(slots_, std::vector<std::uint64_t>(slot_count));
  for (const std::uint64_t hash : old) {
    if (hash == 0) continue;
    std::size_t i = hash & (slots_.size() - 1);
    while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = hash;
  }
}

void JsonText::check_utf8() const {
  const std::string_view text(begin_, static_cast<std::size_t>(end_ - begin_));
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid != text.size()) fail_at("the text is not UTF-8", base_ + valid);
}

void JsonText::fail_at(const std::string& message, std::uint64_t byte) const {
  throw Error(Errc::malformed, message).at_byte(byte);
}

void JsonText::fail_expected(char c, const char* where) const {
  fail(at_end() ? "the text ends early" : std::string("expected '") + c + "' " + where);
}

void JsonText::fail_string(const char* what) const {
  fail(at_end() ? "the text ends early" : std::string("expected ") + what + ", a string");
}

void JsonText::fail_integer(const char* what, const char* why, const char* start) const {
  fail_at(std::string(what) + " " + why, base_ + static_cast<std::uint64_t>(start - begin_));
}

// Reads a string that has escapes, from its first byte `start`; at_ is at the first byte that is not plain.
JsonText::String JsonText::decode(const char* start) {
  decoded_.assign(start, at_);
  while (*at_ != '"') {
    if (*at_ != '\\')
      fail(at_end() ? "the text ends inside a string" : "a control character in a string must be escaped");
    const std::uint64_t escape = byte();
    ++at_;
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (*at_ == 'u') {
      ++at_;
      std::uint32_t code = hex4();
      if (code >= 0xDC00 && code <= 0xDFFF) fail_at("half of a surrogate pair", escape);
      if (code >= 0xD800 && code <= 0xDBFF) {
        if (!take_exactly("\\u")) fail_at("half of a surrogate pair", escape);
        const std::uint32_t low = hex4();
        if (low < 0xDC00 || low > 0xDFFF) fail_at("half of a surrogate pair", escape);
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      append_utf8(decoded_, code);
    } else {
      const auto letter = *at_ == '\0' ? std::string_view::npos : kLetters.find(*at_);
      if (letter == std::string_view::npos) fail_at("an unknown escape in a string", escape);
      decoded_.push_back(kMeanings[letter]);
      ++at_;
    }
    const char* plain = at_;
    at_ = skip_plain(at_);
    decoded_.append(plain, at_);
  }
  ++at_;
  return {decoded_, false};
}

std::uint32_t JsonText::hex4() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = *at_;
    const char lower = static_cast<char>(c | 0x20);
    if (is_digit(c)) {
      code = code * 16 + static_cast<std::uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      code = code * 16 + static_cast<std::uint32_t>(lower - 'a' + 10);
    } else {
      fail("\\u needs four hexadecimal digits");
    }
  }
  return code;
}

// A number that does not fit an integer or a double of 64 bits is refused, because some readers refuse it and others
// round it.
JsonText::Number JsonText::number() {
  const char* const start = at_;
  const auto digits = [&] {
    if (!is_digit(*at_)) fail("expected a value");
    while (is_digit(*at_)) ++at_;
  };
  if (numbers_ == Numbers::python) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (take_exactly("NaN")) return std::numeric_limits<double>::quiet_NaN();
    if (take_exactly("Infinity")) return kInfinity;
    if (take_exactly("-Infinity")) return -kInfinity;
  }
  const bool is_negative = *at_ == '-';
  if (is_negative) ++at_;
  if (*at_ == '0')
    ++at_;
  else
    digits();
  const bool is_whole = *at_ != '.' && *at_ != 'e' && *at_ != 'E';
  if (*at_ == '.') {
    ++at_;
    digits();
  }
  if (*at_ == 'e' || *at_ == 'E') {
    ++at_;
    if (*at_ == '+' || *at_ == '-') ++at_;
    digits();
  }
  const auto parsed = [&]<class T>(T value) -> Number {
    if (std::from_chars(start, at_, value).ec == std::errc{}) return value;
    if (!is_whole && !is_huge(since(start))) return is_negative ? -0.0 : 0.0;
    double rounded = 0;
    const bool may_round = is_whole && numbers_ == Numbers::python;
    if (may_round && std::from_chars(start, at_, rounded).ec == std::errc{}) return rounded;
    fail_at("a number does not fit 64 bits", base_ + static_cast<std::uint64_t>(start - begin_));
  };
  if (!is_whole) return parsed(double{});
  return is_negative ? parsed(std::int64_t{}) : parsed(std::uint64_t{});
}

void JsonText::skip_scalar() {
  if (*at_ == '"') {
    string("a value");
  } else if (!take_exactly("true") && !take_exactly("false") && !take_exactly("null")) {
    number();
  }
}

void JsonText::skip_value(std::uint64_t depth) {
  struct Level {
    bool is_object;
    KeysOfObject keys;
  };
  std::vector<Level> levels;

  const auto take_key = [&] {
    levels.back().keys.add(string("a key").value);
    expect(':', "after a key");
  };
  const auto close = [&](char bracket, const char* where) {
    if (levels.back().keys.has_one_twice()) fail("an object has a key twice");
    expect(bracket, where);
    levels.pop_back();
  };

  do {
    skip_space();
    if (*at_ == '{' || *at_ == '[') {
      if (depth + levels.size() > max_depth_) fail("nested deeper than " + std::to_string(max_depth_) + " levels");
      const bool is_object = *at_ == '{';
      ++at_;
      if (!take(is_object ? '}' : ']')) {
        levels.push_back({is_object, {}});
        if (is_object) take_key();
        continue;
      }
    } else {
      skip_scalar();
    }
    // A value is complete, so the levels around it may be complete too.
    while (!levels.empty() && !take(',')) {
      close(levels.back().is_object ? '}' : ']', "or ',' after a value");
    }
    if (!levels.empty() && levels.back().is_object) take_key();
  } while (!levels.empty());
}

}  // namespace ballast
