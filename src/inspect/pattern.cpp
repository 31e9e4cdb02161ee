#include "inspect/pattern.hpp"

#include <algorithm>

namespace ballast {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Calls look(part) for what lies between the dots, until it returns false.
template <class Look>
void for_each_part(std::string_view name, Look look) {
  for (;;) {
    const auto dot = name.find('.');
    if (!look(name.substr(0, dot)) || dot == std::string_view::npos) return;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

void assign_pattern(std::string& pattern, std::string_view name) {
  pattern.clear();
  bool is_first = true;
  for_each_part(name, [&](std::string_view part) {
    if (!is_first) pattern += '.';
    pattern += is_number(part) ? "#" : part;
    is_first = false;
    return true;
  });
}

std::optional<std::uint64_t> layer_number(std::string_view name) {
  constexpr std::size_t kMostDigits = 18;
  std::optional<std::uint64_t> number;
  for_each_part(name, [&](std::string_view part) {
    if (!is_number(part) || part.size() > kMostDigits) return true;
    number = 0;
    for (const char c : part) number = *number * 10 + static_cast<std::uint64_t>(c - '0');
    return false;
  });
  return number;
}

}  // namespace ballast
