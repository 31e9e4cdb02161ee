// Numbers and strings as pickles write them: as words of a line in protocol 0, as two's complement of any size later.
// What Python reads is read alike; nothing where it would complain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace ballast::pickle {

// The decimal digits of one that does not fit 64 bits.
using Integer = std::variant<std::int64_t, std::string>;

// Python's int(text, base), of base 10 or of 0, where prefixes (0x, 0o, 0b) and C's leading 0 decide. Beyond 64 bits
// only decimal ones are read.
std::optional<Integer> parse_integer(std::string_view text, int base);

// Little-endian. At most kLongestInteger bytes: writing out the digits takes time that grows with their square.
inline constexpr std::size_t kLongestInteger = 1024;
Integer integer_from_twos_complement(std::span<const std::byte> bytes);

std::optional<double> parse_real(std::string_view text);

std::optional<std::string> unescape_bytes(std::string_view text);  // the inside of '...' of Python 2: \n, \x41, \101
std::optional<std::string> unescape_text(std::string_view text);   // Latin-1 with \u0041 and \U00000041, to UTF-8

// UTF-8, lone surrogates let through as Python's "surrogatepass" does.
bool is_text(std::string_view bytes);

void append_utf8(std::string& text, std::uint32_t code_point);

}  // namespace ballast::pickle
