// How ggml searches for the scales of Q4_0 to Q5_K if the elements have weights, in plain loops: the Search of
// encode_weighted_frame.hpp that the vector code is tested against.
#pragma once

#include "kernels/ggml/encode_plain_k.hpp"
#include "kernels/ggml/encode_weighted_frame.hpp"

namespace ballast::kernels::plain {

// Numbers fitted by codes from 0 to kMost times a scale. The largest number becomes kMost, or up to four tenths more or
// less, whatever gives the least error; then each code is changed as long as the change makes the fit better, at most
// five times. As in ggml, a code is a byte, so a negative code wraps when it is kept.
template <int kCount, int kMost>
class PositiveSearch {
 public:
  PositiveSearch(const float* x, const float* weights) : x_(x), weights_(weights) {}

  // The scale is zero if no number is positive.
  float run(std::uint8_t* codes) const {
    const float most = largest(x_, kCount);
    std::fill_n(codes, kCount, std::uint8_t{0});
    if (most < kSmallestMagnitude) return 0;
    const float iscale = best_inverse(most);
    WeightedSums sums;
    for (int j = 0; j < kCount; ++j) {
      const int l = code(iscale * x_[j]);
      codes[j] = static_cast<std::uint8_t>(l);
      sums.add(weights_[j], x_[j], number(l));
    }
    for (int round = 0; round < 5; ++round) {
      if (!refine_once(codes, sums)) break;
    }
    return sums.l2 > 0 ? sums.xl / sums.l2 : 0;
  }

 private:
  static int code(float value) { return std::min(nearest(value), kMost); }

  float best_inverse(float most) const {
    float best = kMost / most;
    float least = error(1 / best, [&](float x) { return number(static_cast<std::uint8_t>(nearest(best * x))); });
    for (int i = -4; i <= 4; ++i) {
      if (i == 0) continue;
      const float iscale = (0.1F * number(i) + kMost) / most;
      const float this_error = error(1 / iscale, [&](float x) { return number(code(iscale * x)); });
      if (!(this_error < least)) continue;
      least = this_error;
      best = iscale;
    }
    return best;
  }

  template <class Code>
  float error(float scale, Code code_of) const {
    float sum = 0;
    for (int j = 0; j < kCount; ++j) {
      const float difference = x_[j] - scale * code_of(x_[j]);
      sum += weights_[j] * difference * difference;
    }
    return sum;
  }

  bool refine_once(std::uint8_t* codes, WeightedSums& sums) const {
    bool is_changed = false;
    for (int j = 0; j < kCount; ++j) {
      const float w = weights_[j], l = number(codes[j]);
      WeightedSums others = {sums.xl - w * x_[j] * l, sums.l2 - w * l * l};
      if (!(others.xl > 0 && others.l2 > 0)) continue;
      const int better = code(x_[j] * others.l2 / others.xl);
      if (better == codes[j]) continue;
      others.add(w, x_[j], number(better));
      if (!(others.xl * others.xl * sums.l2 > sums.xl * sums.xl * others.l2)) continue;
      codes[j] = static_cast<std::uint8_t>(better);
      sums = others;
      is_changed = true;
    }
    return is_changed;
  }

  const float* x_;
  const float* weights_;
};

struct PlainWeightedSearch : PlainSearch {
  static constexpr std::size_t kBatch = 1;

  static void fit_around_zero_by_4(const float* x, const float* weights, Fits& fits) {
    for (int g = 0; g < 16; ++g, x += 16, weights += 16) {
      const ScaleFit fit = AroundZero<16, 4>(x, weights).run();
      fits.scale[g] = fit.scale;
      fits.code_scale[g] = fit.code_scale;
      fits.weight[g] = 0;
      for (int j = 0; j < 16; ++j) fits.weight[g] += weights[j];
    }
  }

  template <int kCount, int kMost>
  static void fit_positive(const float* values, const float* weights, PositiveFit* found) {
    found->scale = PositiveSearch<kCount, kMost>(values, weights).run(found->codes);
  }

  static void fit_scales(const float* values, const float* weights, ScaleFit* found) {
    *found = AroundZero<16, 32>(values, weights).run();
  }

  template <int kMost>
  static void fit_32s(const float* x, const float* weights, ScaleFit* found) {
    *found = AroundZero<32, kMost>(x, weights).run();
  }

  template <class Fit>
  static void fit_32s_from_min(const float* x, const float* weights, Fits& fits) {
    MinSearch<Fit>(x, weights).run(0, fits);
  }
};

}  // namespace ballast::kernels::plain
