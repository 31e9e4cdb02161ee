// Text broken into lines between words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::cli {

// The text in lines of at most `room` columns; a word that is longer has a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t room);

}  // namespace ballast::cli
