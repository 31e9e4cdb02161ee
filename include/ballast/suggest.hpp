// "did you mean": the nearest of the known words. The functions keep no state, so any thread may call them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

// How many insertions, deletions, replacements and swaps of neighbours turn `a` into `b`; `limit` + 1 if it takes more
// than `limit`. The time grows with the product of the two lengths.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// The nearest candidate, if it is near enough for `word` to be a slip of the finger.
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
