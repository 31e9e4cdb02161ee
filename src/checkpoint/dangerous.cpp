#include "checkpoint/dangerous.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include "core/text.hpp"

namespace ballast {

// Nothing of it would get into the output. But a file that means harm is not to be laundered by accident.
void refuse_dangerous(const Checkpoint& checkpoint) {
  if (checkpoint.dangerous.empty()) return;
  const Global& global = checkpoint.dangerous.front();
  std::string what = "names " + quote(global.module + "." + global.name);
  if (!global.why.empty()) what += ", which " + std::string(global.why);
  if (checkpoint.dangerous.size() > 1)
    what += fmt::format(", and {} more that is dangerous", checkpoint.dangerous.size() - 1);
  throw Error(Errc::unsafe, what)
      .in(global.member.empty() ? checkpoint.target : checkpoint.target + "!/" + global.member)
      .at_byte(global.offset)
      .hint("ballast scan shows all of it; --allow-dangerous takes the tensors all the same, and runs nothing");
}

}  // namespace ballast
