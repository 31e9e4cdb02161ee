// What the tables say about a name: the row of the allowlist that it has, and why it is dangerous. judge.hpp says what
// that means for a use of the name.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/pickle/allowlist.hpp"
#include "formats/pickle/dangerous_words.hpp"

namespace ballast::pickle {

// Which table a verdict comes from.
enum class Rule : std::uint8_t {
  none,
  allowlist,
  only_named,
  trusted,
  denylist,
  last_word,
  attributes,
  not_listed,
  given,
  module
};

// Four bytes, since a hostile pickle may name a global in every third byte.
struct Standing {
  std::uint16_t row_number = 0;  // in the allowlist; 0 if the name has no row
  Rule rule = Rule::none;        // the rule that calls it dangerous
  Harm harm = Harm::none;

  const Allowed* row() const noexcept;
  bool is_dangerous() const noexcept { return harm != Harm::none; }
};

// Takes names as a file spells them; those of Python 2 are translated first. A dotted name ("Popen.wait" of
// "subprocess") is looked up by all of its beginnings and by its last word, and is dangerous if it goes through
// something that is not a class ("_os.system" of "argparse"): an attribute of a module can be any other module.
Standing standing_of(std::string_view module, std::string_view name);

// Whether torch.load(weights_only=True) would accept the name.
bool is_allowed_by_weights_only(std::string_view module, std::string_view name);

// "builtins" for "__builtin__", "copyreg" for "copy_reg", "torch._tensor" for "torch.tensor", ...: the module as Python
// 3 knows it.
std::string_view python3_module(std::string_view module) noexcept;

}  // namespace ballast::pickle
