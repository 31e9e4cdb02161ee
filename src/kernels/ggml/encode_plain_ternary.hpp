// How ggml searches for the scales of IQ1_S and IQ1_M, in plain loops: the Search of encode_ternary_frame.hpp that the
// vector code is tested against.
//
// Every way to split the sorted values of a group into three levels is tried, with every way to move the levels.
#pragma once

#include "kernels/ggml/encode_ternary_frame.hpp"

namespace ballast::kernels::plain {

// The best split so far. A split is better if it explains more of the group.
struct BestSplit {
  Split split;
  float explained = std::numeric_limits<float>::lowest();

  void improve(const WeightedSums& sums, int low, int high, int move) {
    if (!(sums.l2 > 0 && sums.xl * sums.xl > explained * sums.l2)) return;
    split = {sums.xl / sums.l2, low, high, move};
    explained = split.scale * sums.xl;
  }
};

// The sums of IQ1_S come from sums over the first elements.
inline void try_splits(const float* x, const float* weights, const std::uint8_t* order, BestSplit& best) {
  constexpr int kGroup = Iq1SFit::kGroup;
  float sum_x[kGroup + 1] = {}, sum_w[kGroup + 1] = {};
  for (int j = 0; j < kGroup; ++j) {
    sum_x[j + 1] = sum_x[j] + weights[order[j]] * x[order[j]];
    sum_w[j + 1] = sum_w[j] + weights[order[j]];
  }
  for (int low = 0; low <= kGroup; ++low) {
    for (int high = low; high <= kGroup; ++high) {
      for (int move = 0; move < 2; ++move) {
        const float* q = kMovedLevels[move];
        const WeightedSums sums = {
            sum_x[low] * q[0] + (sum_x[high] - sum_x[low]) * q[1] + (sum_x[kGroup] - sum_x[high]) * q[2],
            sum_w[low] * q[0] * q[0] + (sum_w[high] - sum_w[low]) * q[1] * q[1] +
                (sum_w[kGroup] - sum_w[high]) * q[2] * q[2]};
        best.improve(sums, low, high, move);
      }
    }
  }
}

// The sums of IQ1_M are taken anew for every split, from the lowest value up.
inline void try_splits_of_two_rows(const float* x, const float* weights, const std::uint8_t* order, BestSplit& best) {
  constexpr int kGroup = Iq1MFit::kGroup;
  for (int low = 0; low <= kGroup; ++low) {
    for (int high = low; high <= kGroup; ++high) {
      for (int move = 0; move < 4; ++move) {
        WeightedSums sums;
        for (int j = 0; j < kGroup; ++j) {
          const int i = order[j], level = j < low ? 0 : j < high ? 1 : 2;
          const float q = kMovedLevels[is_down<Iq1MFit>(move, i / 8)][level];
          sums.xl += weights[i] * q * x[i];
          sums.l2 += weights[i] * q * q;
        }
        best.improve(sums, low, high, move);
      }
    }
  }
}

struct PlainTernarySearch {
  static std::uint16_t nearest_of(std::span<const std::uint16_t> near, const float* x, const float* weights,
                                  const float (&values)[8], float scale) {
    return nearest_row<8>(near, x, weights, [&](int level) { return scale * values[level]; });
  }

  template <class Fit>
  static void split_groups(const float* x, const float* weights, const std::uint8_t* order, Split* splits) {
    for (int at = 0; at < 256; at += Fit::kGroup) {
      BestSplit best{{0, -1, -1, 0}};
      if (!(std::fabs(farthest_from_zero(x + at, Fit::kGroup)) < Fit::kSmallest)) {
        if constexpr (Fit::kGroup == 32)
          try_splits(x + at, weights + at, order + at, best);
        else
          try_splits_of_two_rows(x + at, weights + at, order + at, best);
      }
      *splits++ = best.split;
    }
  }
};

}  // namespace ballast::kernels::plain
