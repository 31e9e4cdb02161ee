// Words for messages, and names that users write as patterns. What programs outside need too is in <ballast/text.hpp>.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <ballast/text.hpp>

namespace ballast {

// A name as it stands in a message: in quotes, escaped, and cut in the middle when it is longer than anybody would
// read.
std::string quote(std::string_view name);

// How many bytes from the beginning are valid UTF-8: all of them, or up to the first that is not.
std::size_t valid_utf8_prefix(std::string_view text);

// Shell patterns over whole names: * any run (dots and slashes too), ? any one byte, [a-z] and [!a-z] one byte of a
// set. A [ that is never closed is itself. No pattern takes exponential time.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace ballast
