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

// Matches a whole name against a glob: * (dots and slashes too), ?, [a-z], [!a-z], {a,b}, {0..31} and backslashes. What
// is never closed stands for itself, and so do braces without a comma or a range. No glob takes exponential time.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace ballast
