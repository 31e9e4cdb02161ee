// The words of hints and messages for people who call functions, not the command: keywords instead of flags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ballast/remedy.hpp>

namespace ballast::python {

// Who called. Some keywords have other names in another function: safety="strict" of open() is weights_only=True of the
// verbs.
enum class Caller : std::uint8_t { module, verb, peft };

// "force=True" for Remedy::overwrite.
std::string keyword_of(Remedy remedy, std::string_view argument, Caller caller = Caller::module);

// For Advice::text(). A verb that has no such keyword names one that has it: dtype="F32" of ballast.convert().
Advice::Words words_for(Caller caller);

// A text in which every flag of the command is its keyword: "--max-shard-size 5GB" is max_shard_size="5GB". What stands
// in double quotes, such as a name, stays as it is.
std::string in_keywords(std::string_view text);

}  // namespace ballast::python
