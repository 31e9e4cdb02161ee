// Help, written from the same description of the command line that the parser uses, so that help cannot be out of date.
#pragma once

#include <string>

#include "arguments.hpp"
#include "terminal.hpp"

namespace ballast::cli {

// The help of the command, or of one verb. Groups of options that are rarely needed are only named, unless `all` of
// them are to be explained: the help of every verb fits a screen, which is fifty lines of eighty columns.
std::string help_text(const Command& command, const Terminal& terminal, bool all);

// The options of every verb, which would fill a screen in the help of each.
std::string common_options_text(const Command& root, const Terminal& terminal);

// The answer of `ballast` without arguments.
std::string short_usage(const Terminal& terminal);

}  // namespace ballast::cli
