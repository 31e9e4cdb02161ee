// Help, written from the parser itself so that it cannot be out of date.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "terminal.hpp"

namespace ballast::cli {

// For the whole command, or for one verb of it.
std::string help_text(const CLI::App& app, const Terminal& terminal);

// What `ballast` alone answers.
std::string short_usage();

// "ballast meta get"
std::string command_path(const CLI::App& app);

// Whether the option is followed by a value.
bool takes_value(const CLI::Option& option);

}  // namespace ballast::cli
