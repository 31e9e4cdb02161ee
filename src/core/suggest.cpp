#include <ballast/suggest.hpp>

#include <algorithm>
#include <vector>

namespace ballast {

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t length_gap = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  if (length_gap > limit) return limit + 1;

  // Three rows of the usual table of edit distances: `before`, the row above `above`, is for swaps.
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    if (*std::min_element(row.begin(), row.end()) > limit) return limit + 1;
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace ballast
