// Which globals are known, which are dangerous, and which torch's own weights_only lets through. Tables, no code.
#pragma once

#include <string_view>

#include <ballast/global.hpp>

namespace ballast::pickle {

struct Judgement {
  Verdict verdict = Verdict::inert;
  std::string_view why;  // of a dangerous one
};

// Names as a file spells them: Python 2's are translated first. A dotted name ("Popen.wait" of "subprocess") is judged
// by all of its beginnings and of its ends, and is dangerous where it goes through what is no class ("_os.system" of
// "argparse"): an attribute of a module can be any other module.
Judgement judge(std::string_view module, std::string_view name);

// Whether torch.load(weights_only=True) would go on.
bool is_allowed_by_weights_only(std::string_view module, std::string_view name);

// "builtins" for "__builtin__", "copyreg" for "copy_reg", "torch._tensor" for "torch.tensor", ...: the module as Python
// 3 knows it.
std::string_view python3_module(std::string_view module) noexcept;

}  // namespace ballast::pickle
