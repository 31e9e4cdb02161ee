#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_ternary.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_row_inl.hpp"
#include "kernels/ggml/encode_search_inl.hpp"

// IQ1_S and IQ1_M, a group a lane; but the rows near one are looked through a row at a time.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_ternary_on_target(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  encode_plainly(type, in, weights, count, out);
}
#else

// plain::BestSplit of kLanes groups. A split is kept as one number.
class BestSplits {
 public:
  BestSplits()
      : scale_(hn::Zero(F32())), explained_(all(std::numeric_limits<float>::lowest())), split_(hn::Set(I32(), -1)) {}

  HWY_INLINE void improve(const Sums& sums, std::size_t low, std::size_t high, std::size_t move) {
    const Mask is_better =
        hn::And(hn::Gt(sums.l2, hn::Zero(F32())), hn::Gt(hn::Mul(sums.xl, sums.xl), hn::Mul(explained_, sums.l2)));
    if (hn::AllFalse(F32(), is_better)) return;
    scale_ = hn::IfThenElse(is_better, hn::Div(sums.xl, sums.l2), scale_);
    explained_ = hn::IfThenElse(is_better, hn::Mul(scale_, sums.xl), explained_);
    const Ints split = hn::Set(I32(), static_cast<std::int32_t>(low << 16 | high << 8 | move));
    split_ = hn::IfThenElse(hn::RebindMask(I32(), is_better), split, split_);
  }

  void put(plain::Split* splits) const {
    alignas(64) float scales[kLanes];
    alignas(64) std::int32_t numbers[kLanes];
    hn::Store(scale_, F32(), scales);
    hn::Store(split_, I32(), numbers);
    for (std::size_t i = 0; i < kLanes; ++i)
      splits[i] = {scales[i], numbers[i] >> 16, numbers[i] >> 8 & 255, numbers[i] & 255};
  }

 private:
  Floats scale_, explained_;
  Ints split_;
};

// The elements of kLanes groups from the lowest value up.
template <std::size_t kGroup>
struct SortedGroups {
  SortedGroups(const float* from, const float* weights, const std::uint8_t* order) {
    alignas(64) float sorted[3][kLanes * kGroup];
    for (std::size_t i = 0; i < kLanes * kGroup; ++i) {
      const std::size_t at = i / kGroup * kGroup + order[i];
      sorted[0][i] = from[at];
      sorted[1][i] = weights[at];
      sorted[2][i] = order[i];
    }
    x.fill(sorted[0]);
    weight.fill(sorted[1]);
    place.fill(sorted[2]);
  }

  Across<kGroup> x, weight, place;
};

HWY_INLINE Floats times(Floats sum, std::size_t move, std::size_t level) {
  return hn::Mul(sum, all(plain::kMovedLevels[move][level]));
}

// plain::try_splits
void try_splits(const SortedGroups<32>& groups, BestSplits& best) {
  constexpr std::size_t kGroup = 32;
  Across<kGroup + 1> sum_x, sum_w, rest_x[2], rest_w[2];
  sum_x.set(0, hn::Zero(F32()));
  sum_w.set(0, hn::Zero(F32()));
  for (std::size_t j = 0; j < kGroup; ++j) {
    sum_x.set(j + 1, hn::Add(sum_x[j], hn::Mul(groups.weight[j], groups.x[j])));
    sum_w.set(j + 1, hn::Add(sum_w[j], groups.weight[j]));
  }
  for (std::size_t j = 0; j <= kGroup; ++j) {
    for (std::size_t move = 0; move < 2; ++move) {
      rest_x[move].set(j, times(hn::Sub(sum_x[kGroup], sum_x[j]), move, 2));
      rest_w[move].set(j, times(times(hn::Sub(sum_w[kGroup], sum_w[j]), move, 2), move, 2));
    }
  }
  for (std::size_t low = 0; low <= kGroup; ++low) {
    const Sums first[2] = {{times(sum_x[low], 0, 0), times(times(sum_w[low], 0, 0), 0, 0)},
                           {times(sum_x[low], 1, 0), times(times(sum_w[low], 1, 0), 1, 0)}};
    for (std::size_t high = low; high <= kGroup; ++high) {
      const Floats middle_x = hn::Sub(sum_x[high], sum_x[low]), middle_w = hn::Sub(sum_w[high], sum_w[low]);
      for (std::size_t move = 0; move < 2; ++move) {
        const Floats middle_l2 = times(times(middle_w, move, 1), move, 1);
        const Floats xl = hn::Add(hn::Add(first[move].xl, times(middle_x, move, 1)), rest_x[move][high]);
        const Floats l2 = hn::Add(hn::Add(first[move].l2, middle_l2), rest_w[move][high]);
        best.improve({xl, l2}, low, high, move);
      }
    }
  }
}

// What each element adds to the sums of IQ1_M, for each move of the two rows and each level.
struct MovedTerms {
  explicit MovedTerms(const SortedGroups<16>& groups) {
    for (std::size_t j = 0; j < 16; ++j) {
      const Mask is_first_row = hn::Lt(groups.place[j], all(8));
      for (std::size_t move = 0; move < 4; ++move) {
        for (std::size_t level = 0; level < 3; ++level) {
          const Floats q = hn::IfThenElse(is_first_row, all(plain::kMovedLevels[move >> 1][level]),
                                          all(plain::kMovedLevels[move & 1][level]));
          const Floats weighted = hn::Mul(groups.weight[j], q);
          xl[move][level].set(j, hn::Mul(weighted, groups.x[j]));
          l2[move][level].set(j, hn::Mul(weighted, q));
        }
      }
    }
  }

  HWY_INLINE void add(std::size_t level, std::size_t j, Sums (&sums)[4]) const {
    for (std::size_t move = 0; move < 4; ++move) {
      sums[move].xl = hn::Add(sums[move].xl, xl[move][level][j]);
      sums[move].l2 = hn::Add(sums[move].l2, l2[move][level][j]);
    }
  }

  Across<16> xl[4][3], l2[4][3];
};

// plain::try_splits_of_two_rows. Splits with the same lowest elements share the beginnings of their sums.
void try_splits(const SortedGroups<16>& groups, BestSplits& best) {
  const MovedTerms terms(groups);
  Sums lowest[4] = {no_sums(), no_sums(), no_sums(), no_sums()};
  for (std::size_t low = 0; low <= 16; ++low) {
    Sums lower[4] = {lowest[0], lowest[1], lowest[2], lowest[3]};
    for (std::size_t high = low; high <= 16; ++high) {
      Sums sums[4] = {lower[0], lower[1], lower[2], lower[3]};
      for (std::size_t j = high; j < 16; ++j) terms.add(2, j, sums);
      for (std::size_t move = 0; move < 4; ++move) best.improve(sums[move], low, high, move);
      if (high < 16) terms.add(1, high, lower);
    }
    if (low < 16) terms.add(0, low, lowest);
  }
}

struct TernarySearch {
  template <class Fit>
  static void split_groups(const float* x, const float* weights, const std::uint8_t* order, plain::Split* splits) {
    constexpr std::size_t kGroup = Fit::kGroup;
    for (std::size_t at = 0; at < 256; at += kLanes * kGroup, splits += kLanes) {
      BestSplits best;
      try_splits(SortedGroups<kGroup>(x + at, weights + at, order + at), best);
      best.put(splits);
      for (std::size_t i = 0; i < kLanes; ++i) {
        if (largest_magnitude<kGroup>(x + at + i * kGroup) < Fit::kSmallest) splits[i].low = -1;
      }
    }
  }

  static std::uint16_t nearest_of(std::span<const std::uint16_t> near, const float* x, const float* weights,
                                  const float (&values)[8], float scale) {
    return nearest_row<8>(near, x, weights, LevelValues<8>(values, scale));
  }
};

void encode_ternary_on_target(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  const auto encode = type == DType::iq1_s ? plain::to_iq1_s<TernarySearch> : plain::to_iq1_m<TernarySearch>;
  for (; count > 0; --count, in += 256, weights += 256, out += info(type).block_bytes) encode(in, weights, out);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(encode_ternary_on_target);

void encode_ternary(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_ternary_on_target)(type, in, weights, count, out);
}

}  // namespace ballast::kernels
#endif
