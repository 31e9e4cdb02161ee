// Help, written from the description of the command line that it is parsed by, so that it cannot be out of date.
#pragma once

#include <string>

#include "arguments.hpp"
#include "terminal.hpp"

namespace ballast::cli {

// For the whole command, or for one verb of it.
std::string help_text(const Command& command, const Terminal& terminal);

// What `ballast` alone answers.
std::string short_usage();

}  // namespace ballast::cli
