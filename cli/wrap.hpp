// Text broken into lines between words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::cli {

struct Terminal;

// The text in lines of at most `room` columns; a word that is longer has a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t room);

// The columns of the widest word.
std::size_t widest_word(std::string_view text);

// `label` and the text behind it. A terminal gets lines that fit its width, the later ones below the beginning of the
// text, or below the label if that is wide. A word that is wider than the terminal stays whole, on a line of its own:
// a path that is cut is no path. A pipe gets one line.
std::string labelled(const Terminal& terminal, std::string_view label, std::string_view text);

}  // namespace ballast::cli
