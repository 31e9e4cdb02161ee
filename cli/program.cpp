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

std::string Program::summary_of(std::string_view verb, std::string_view summary) const {
  std::vector<std::string_view> inner;
  for (const std::string_view one : verbs) {
    if (one.starts_with(std::string(verb) + ' ')) inner.push_back(one.substr(verb.size() + 1));
  }
  return inner.empty() ? std::string(summary)
                       : fmt::format("only {}; ballast has the rest of it", fmt::join(inner, ", "));
}

void keep_verbs_of(const Program& program, Command& verb) {
  verb.verbs.remove_if([&](const Command& inner) { return !program.has(fmt::format("{} {}", verb.name, inner.name)); });
}

}  // namespace ballast::cli
