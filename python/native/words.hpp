// The words of hints and messages for people who call functions, not the command: keywords instead of flags.
#pragma once

#include <string>
#include <string_view>

#include <ballast/remedy.hpp>

namespace ballast::python {

// "force=True" for Remedy::overwrite.
std::string keyword_of(Remedy remedy, std::string_view argument);

// A text in which every flag of the command is its keyword: "--max-shard-size 5GB" is "max_shard_size=5GB".
std::string in_keywords(std::string_view text);

}  // namespace ballast::python
