// Help, written from the same description of the command line that the parser uses, so that help cannot be out of date.
#pragma once

#include <string>

#include "arguments.hpp"
#include "terminal.hpp"

namespace ballast::cli {

// The help of the whole command, or of one verb.
std::string help_text(const Command& command, const Terminal& terminal);

// The options of every verb, which would fill a screen in the help of each.
std::string common_options_text(const Command& root, const Terminal& terminal);

// The answer of `ballast` without arguments.
std::string short_usage();

}  // namespace ballast::cli
