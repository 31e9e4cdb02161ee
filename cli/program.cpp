#include "program.hpp"

#include <algorithm>
#include <string>
#include <vector>

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
  std::vector<std::string_view> left;
  for (const std::string_view one : program.verbs) {
    if (one.starts_with(verb.name + ' ')) left.push_back(one.substr(verb.name.size() + 1));
  }
  if (!left.empty()) verb.summary = fmt::format("only {}; ballast has the rest of it", fmt::join(left, ", "));
}

}  // namespace ballast::cli
