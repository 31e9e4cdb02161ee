#include "inspect/name_pattern.hpp"

#include <algorithm>

namespace ballast {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void assign_pattern(std::string& pattern, std::string_view name) {
  pattern.clear();
  for (;;) {
    const auto dot = name.find('.');
    const auto part = name.substr(0, dot);
    pattern += is_number(part) ? "#" : part;
    if (dot == std::string_view::npos) return;
    pattern += '.';
    name.remove_prefix(dot + 1);
  }
}

}  // namespace ballast
