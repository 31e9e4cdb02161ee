// The rank of changes: whether a matrix of changes is a product of two thin ones, as a merged LoRA leaves it.
#pragma once

#include <vector>

#include <ballast/diff.hpp>

namespace ballast {

// Sets the rank of every changed matrix of floating numbers that are all finite, if it has no more than 2^17 columns.
void find_ranks(std::vector<DiffReport::Change>& changes, const Checkpoint& a, const Checkpoint& b,
                const DiffOptions& options);

// What the squares of singular values say; `total` is the sum of all of them, also of those that are not listed.
DiffReport::Rank rank_of(const std::vector<double>& squares, double total);

}  // namespace ballast
