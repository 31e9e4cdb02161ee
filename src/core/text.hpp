// Words for messages, and names that users write as patterns. Functions that programs outside need too are in
// <ballast/text.hpp>.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <ballast/text.hpp>

namespace ballast {

// A name as it stands in a message: in quotes, escaped, and cut in the middle if it is longer than anybody would read.
std::string quote(std::string_view name);

// How many bytes from the beginning are valid UTF-8: all of them, or those before the first invalid byte.
std::size_t valid_utf8_prefix(std::string_view text);

// The letters A to Z as a to z; all other bytes stay.
std::string lower_case(std::string_view text);

// Matches a whole name against a shell pattern: * is any run of bytes (dots and slashes too), ? any one byte, [a-z] and
// [!a-z] one byte of a set. A [ that is never closed stands for itself. No pattern takes exponential time.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace ballast
