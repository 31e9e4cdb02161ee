// Numbers and strings as pickles write them: as words of a line in protocol 0, as two's complement of any size later.
// They are read as Python reads them; the result is nothing if Python would complain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace ballast::pickle {

// The text has the decimal digits of an integer that does not fit 64 bits.
using Integer = std::variant<std::int64_t, std::string>;

// Python's int(text, base), with base 10, or with 0, for which prefixes (0x, 0o, 0b) and C's leading 0 decide. Beyond
// 64 bits only decimal integers are read.
std::optional<Integer> parse_integer(std::string_view text, int base);

// Reads little-endian bytes, at most kLongestInteger: the time to write out the digits grows with the square of their
// number.
inline constexpr std::size_t kLongestInteger = 1024;
Integer integer_from_twos_complement(std::span<const std::byte> bytes);

std::optional<double> parse_real(std::string_view text);

std::optional<std::string> unescape_bytes(std::string_view text);  // the inside of '...' of Python 2: \n, \x41, \101
std::optional<std::string> unescape_text(std::string_view text);   // Latin-1 with \u0041 and \U00000041, to UTF-8

// Whether bytes are UTF-8. Lone surrogates may pass, as with Python's "surrogatepass".
bool is_text(std::string_view bytes);

void append_utf8(std::string& text, std::uint32_t code_point);

}  // namespace ballast::pickle
