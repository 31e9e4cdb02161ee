// The sums and extremes of a block of numbers, in vector code that is chosen when the program runs.
//
// Sums are kept in kSumLanes lanes, whatever the width of the vectors, and are added up in one fixed order: their bits
// do not depend on the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ballast::kernels {

inline constexpr std::size_t kSumLanes = 16;

// Sums of distances from the first value: if that value belongs to the block, the difference squares - sum²/n loses at
// most a factor of n, so one pass over the values is as good as two.
struct BlockSums {
  double sum = 0, squares = 0;  // of value - values[0]
  double magnitudes = 0;        // of |value|
  double min = 0, max = 0;      // meaningless if a value is NaN; sum is then NaN, too
  std::uint64_t zeros = 0;
};

// `count` is at least 1 and at most 2^20.
BlockSums block_sums(const float* values, std::size_t count) noexcept;
BlockSums block_sums(const double* values, std::size_t count) noexcept;

}  // namespace ballast::kernels
