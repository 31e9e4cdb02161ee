// Two doubles at once, as the compiler's own vector type, which works on every x86-64 and every ARMv8.
//
// Sums are kept in four lanes and added up in one fixed order, so their bits do not depend on the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ballast::kernels {

using Pair [[gnu::vector_size(16)]] = double;
using PairMask [[gnu::vector_size(16)]] = std::int64_t;  // -1 if true, the result of a comparison

inline constexpr std::size_t kPairs = 2;
inline constexpr std::size_t kLanes = 2 * kPairs;

inline Pair load_pair(const double* from) {
  Pair pair;
  std::memcpy(&pair, from, sizeof pair);
  return pair;
}

inline double sum_of(const Pair (&x)[kPairs]) { return (x[0][0] + x[1][0]) + (x[0][1] + x[1][1]); }

inline std::uint64_t count_of(const PairMask (&sums)[kPairs]) {
  return static_cast<std::uint64_t>(-(sums[0][0] + sums[1][0] + sums[0][1] + sums[1][1]));
}

}  // namespace ballast::kernels
