// JsonText: reads the tokens of a JSON text one after the other; every error names its byte.
//
// Strings and unsigned integers, which make up a safetensors header, are read fast; any other value can be skipped. The
// text must be valid UTF-8 and be followed by zeros (PaddedText), so that no look-ahead needs a bound: a zero is not
// JSON, and it stops every loop.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/padded_text.hpp"

namespace ballast {

// The keys of an object whose keys nobody wants, kept only to find out whether one of them is there twice. Each key is
// kept as 64 bits, seeded anew in every process: even the tens of millions of keys that a hostile text can have collide
// by chance in fewer than one of a hundred thousand such texts.
class KeysOfObject {
 public:
  std::uint64_t add(std::string_view key);  // returns the key's hash
  bool has_one_twice() const noexcept { return has_one_twice_; }
  void reserve(std::size_t count);

 private:
  void grow();
  void resize(std::size_t slot_count);

  std::vector<std::uint64_t> slots_;  // open addressing; a power of two, and 0 is an empty slot
  std::size_t count_ = 0;
  bool has_one_twice_ = false;
};

class JsonText {
 public:
  enum class Numbers : std::uint8_t {
    json,    // a number that does not fit 64 bits is refused
    python,  // NaN, Infinity and -Infinity are numbers, and a long integer is a double
  };

  // `base` is added to every byte that an error names; deeper nesting than `max_depth` is refused.
  JsonText(const PaddedText& padded, std::uint64_t base, std::uint64_t max_depth, Numbers numbers = Numbers::json)
      : JsonText(padded.view(), base, max_depth, numbers) {}

  // Checks the whole text. Call this before any other function.
  void check_utf8() const;

  void skip_space() noexcept {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
  }
  bool at_end() const noexcept { return at_ >= end_; }
  std::uint64_t byte() const noexcept { return base_ + static_cast<std::uint64_t>(at_ - begin_); }

  // Each of these functions first skips the white space before the token.
  bool take(char c) noexcept {
    if (*at_ != c) {
      skip_space();
      if (*at_ != c) return false;
    }
    ++at_;
    return true;
  }
  void expect(char c, const char* where) {
    if (!take(c)) [[unlikely]]
      fail_expected(c, where);
  }
  bool take_null() noexcept {
    skip_space();
    return take_exactly("null");
  }

  // A mark lets the caller try one reading of the text and go back for another.
  const char* mark() const noexcept { return at_; }
  std::string_view since(const char* mark) const noexcept { return {mark, static_cast<std::size_t>(at_ - mark)}; }
  void return_to(const char* mark) noexcept { at_ = mark; }

  struct String {
    std::string_view value;  // in the text itself, or decoded: a decoded value is valid until the next string is read
    bool in_text;
  };
  String string(const char* what) {
    if (!take('"')) [[unlikely]]
      fail_string(what);
    const char* start = at_;
    at_ = skip_plain(at_);
    if (*at_ != '"') [[unlikely]]
      return decode(start);
    const std::string_view value(start, static_cast<std::size_t>(at_ - start));
    ++at_;
    return {value, true};
  }

  // Takes the bytes of a string up to its end or its first escape.
  std::string_view plain_run() noexcept {
    const char* start = at_;
    at_ = skip_plain(at_);
    return {start, static_cast<std::size_t>(at_ - start)};
  }

  // Takes the next bytes if they are exactly these.
  template <std::size_t n>
  bool take_exactly(const char (&word)[n]) noexcept {
    static_assert(n - 1 <= PaddedText::kPadding);
    if (std::memcmp(at_, word, n - 1) != 0) return false;
    at_ += n - 1;
    return true;
  }

  std::uint64_t unsigned_integer(const char* what) {
    skip_space();
    const char* start = at_;
    std::uint64_t value = take_up_to_8_digits();
    while (is_digit(*at_)) {
      const auto digit = static_cast<std::uint64_t>(*at_ - '0');
      const bool overflows =
          __builtin_mul_overflow(value, std::uint64_t{10}, &value) || __builtin_add_overflow(value, digit, &value);
      if (overflows) [[unlikely]]
        fail_integer(what, "does not fit 64 bits", start);
      ++at_;
    }
    const bool leading_zero = *start == '0' && at_ - start > 1;
    if (at_ == start || leading_zero || *at_ == '.' || *at_ == 'e' || *at_ == 'E') [[unlikely]] {
      fail_integer(what, "must be a whole number of at least 0", start);
    }
    return value;
  }

  // Call this at a value that is not of any other kind. A whole number below 0 is signed, any other whole number
  // unsigned.
  using Number = std::variant<std::int64_t, std::uint64_t, double>;
  Number number();

  // Checks any value without keeping it: `depth` is the depth of the value itself. Refuses duplicate keys at every
  // level.
  void skip_value(std::uint64_t depth);

  [[noreturn]] void fail(const std::string& message) const { fail_at(message, byte()); }
  [[noreturn]] void fail_at(const std::string& message, std::uint64_t byte) const;

 private:
  JsonText(std::string_view text, std::uint64_t base, std::uint64_t max_depth, Numbers numbers)
      : begin_(text.data()),
        at_(text.data()),
        end_(text.data() + text.size()),
        base_(base),
        max_depth_(max_depth),
        numbers_(numbers) {}

  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

  // Most numbers are short and their lengths differ, so the branch at the end of a loop would be mispredicted each
  // time. Instead, the digits among the next eight bytes are moved to the upper end, as if zeros stood before them, and
  // put together in pairs, fours and eights.
  std::uint64_t take_up_to_8_digits() noexcept {
    std::uint64_t word;
    std::memcpy(&word, at_, 8);
    word ^= 0x3030'3030'3030'3030;  // a digit is now its value, and every other byte is 10 or more
    const std::uint64_t others =
        ((word + 0x7676'7676'7676'7676) | word) & 0x8080'8080'8080'8080;  // the lowest is exact
    const int count = others == 0 ? 8 : std::countr_zero(others) / 8;
    if (count == 0) return 0;
    at_ += count;
    word <<= 8 * (8 - count);
    word = (word * 2561 >> 8) & 0x00FF'00FF'00FF'00FF;
    word = (word * 6553601 >> 16) & 0x0000'FFFF'0000'FFFF;
    return word * 42949672960001 >> 32;
  }

  // Skips to the next quote, backslash or control character, eight bytes at a time.
  static const char* skip_plain(const char* at) noexcept {
    static_assert(std::endian::native == std::endian::little);
    constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101, kHighs = 0x8080'8080'8080'8080;
    for (;; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      const auto zero_bytes = [](std::uint64_t v) { return (v - kOnes) & ~v & kHighs; };  // the lowest is exact
      const std::uint64_t control = (word - kOnes * 0x20) & ~word & kHighs;
      const std::uint64_t special = zero_bytes(word ^ (kOnes * '"')) | zero_bytes(word ^ (kOnes * '\\')) | control;
      if (special != 0) return at + std::countr_zero(special) / 8;
    }
  }

  // These are separate functions so that their callers stay short enough to be inlined.
  [[noreturn]] void fail_expected(char c, const char* where) const;
  [[noreturn]] void fail_string(const char* what) const;
  [[noreturn]] void fail_integer(const char* what, const char* why, const char* start) const;
  String decode(const char* start);
  std::uint32_t hex4();
  void skip_scalar();

  const char* begin_;
  const char* at_;
  const char* end_;
  std::uint64_t base_;
  std::uint64_t max_depth_;
  Numbers numbers_;
  std::string decoded_;
};

}  // namespace ballast
