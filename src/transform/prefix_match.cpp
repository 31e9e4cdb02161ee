#include "transform/prefix_match.hpp"

#include <algorithm>

#include "core/name_hash.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

constexpr int kMostDots = 8;  // in a prefix

}  // namespace

std::size_t count_shared(const Checkpoint& a, const Checkpoint& b) {
  return static_cast<std::size_t>(
      std::count_if(a.begin(), a.end(), [&](const auto& entry) { return b.contains(entry.name); }));
}

std::string find_prefix(const Checkpoint& longer, const Checkpoint& shorter) {
  const std::size_t smaller = std::min(longer.size(), shorter.size());
  if (smaller == 0 || count_shared(longer, shorter) * 10 > smaller) return {};
  NameViewMap<std::size_t> found_by;
  for (const auto& [name, tensor] : longer) {
    const std::string_view whole = name;
    std::size_t dot = whole.find('.');
    for (int dots = 0; dots < kMostDots && dot != std::string_view::npos; ++dots, dot = whole.find('.', dot + 1)) {
      if (shorter.contains(whole.substr(dot + 1))) ++found_by[whole.substr(0, dot + 1)];
    }
  }
  std::string_view best;
  std::size_t most = 0, second = 0;
  for (const auto& [prefix, count] : found_by) {
    second = std::max(second, std::min(count, most));
    if (count > most) best = prefix;
    most = std::max(most, count);
  }
  return most * 10 >= smaller * 9 && second * 10 <= most ? std::string(best) : std::string();
}

Checkpoint with_prefix_of(Checkpoint shorter, const Checkpoint& longer, const std::string& prefix) {
  return rename_names(std::move(shorter), [&](std::string_view name) {
    std::string whole = prefix + std::string(name);
    return longer.contains(whole) ? whole : std::string(name);
  });
}

Checkpoint without_prefix(Checkpoint longer, const Checkpoint& shorter, const std::string& prefix) {
  return rename_names(std::move(longer), [&](std::string_view name) {
    const bool has_rest = name.starts_with(prefix) && shorter.contains(name.substr(prefix.size()));
    return std::string(has_rest ? name.substr(prefix.size()) : name);
  });
}

}  // namespace ballast
