// "did you mean": the nearest of the words that there are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; `limit` + 1 where it is more.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// The nearest candidate, where it is near enough to be a slip of the finger.
template <class Range>
std::optional<std::string> nearest(std::string_view word, const Range& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = word.size() / 4 + 2;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate, best_distance);
    if (distance >= best_distance) continue;
    best = std::string(candidate);
    best_distance = distance;
  }
  return best;
}

}  // namespace ballast
