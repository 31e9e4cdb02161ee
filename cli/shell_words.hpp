// The words that can stand on our command line, taken from its own description: the one source of all completion
// scripts.
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"

namespace ballast::cli {

struct OptionWords {
  std::string long_name;   // "include"; every option has one
  std::string short_name;  // "o", or empty
  std::string description;
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> choices;
};

struct Word {
  std::string text, description;
};

// A place on the command line: after `ballast`, after `ballast ls`, after `ballast meta get`.
struct CommandWords {
  std::string path;         // "", " ls", " meta get"
  std::vector<Word> words;  // the words of which one must follow, if files may not
  std::vector<OptionWords> options;
};

// All commands; the top level comes first.
std::vector<CommandWords> all_commands(const Command& root);

}  // namespace ballast::cli
