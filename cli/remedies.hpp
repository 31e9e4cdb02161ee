// The words of the command for what a hint tells people to do: flags and verbs.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/remedy.hpp>

namespace ballast::cli {

// A hint of the library, in the words of the command.
std::string worded(const Advice& advice);

// A note with its hint; without the file that the note is about.
std::string text_of(const Note& note);

}  // namespace ballast::cli
