#include "program.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "arguments.hpp"

namespace ballast::cli {

bool Program::has(std::string_view verb) const {
  return verbs.empty() || std::ranges::any_of(verbs, [&](std::string_view one) {
           return one == verb || one.starts_with(std::string(verb) + ' ');
         });
}

void keep_verbs_of(const Program& program, Command& verb) {
  verb.verbs.remove_if([&](const Command& inner) { return !program.has(fmt::format("{} {}", verb.name, inner.name)); });
}

}  // namespace ballast::cli
