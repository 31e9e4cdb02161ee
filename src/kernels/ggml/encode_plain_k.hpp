// How ggml searches for the scales of Q2_K to Q6_K, IQ4_NL and IQ4_XS, in plain loops: the Search of encode_frame.hpp
// that the vector code is tested against.
#pragma once

#include "kernels/ggml/encode_frame.hpp"

namespace ballast::kernels::plain {

// The points half-way between two neighbours of kIq4Values. A value on such a point goes up.
inline constexpr std::array<float, 15> kIq4Borders = [] {
  std::array<float, 15> borders{};
  for (std::size_t i = 0; i < borders.size(); ++i)
    borders[i] = static_cast<float>(kIq4Values[i] + kIq4Values[i + 1]) / 2;
  return borders;
}();

// NaN, which comes from an overflow, gets the last code.
inline std::uint8_t iq4_code(float value) {
  std::size_t code = 0;
  for (std::size_t step = 8; step > 0; step /= 2) code += value < kIq4Borders[code + step - 1] ? 0 : step;
  return static_cast<std::uint8_t>(code);
}

struct WeightedSums {
  float xl = 0, l2 = 0;
  void add(float weight, float x, float l) {
    xl += weight * x * l;
    l2 += weight * l * l;
  }
};

// The weights of one group for a fit with mins, if they are not given.
template <class Fit>
inline void weigh(const float* x, const float* given, float* weights) {
  if constexpr (Fit::kGiven) return static_cast<void>(std::copy_n(given, Fit::kGroup, weights));
  float mean = 0;
  if constexpr (!Fit::kAbsolute) {
    float squares = 0;
    for (int j = 0; j < Fit::kGroup; ++j) squares += x[j] * x[j];
    mean = std::sqrt(squares / Fit::kGroup);
  }
  for (int j = 0; j < Fit::kGroup; ++j) weights[j] = mean + std::fabs(x[j]);
}

// One group fitted by codes times a scale plus a min, which is zero or less.
template <class Fit>
class MinSearch {
 public:
  MinSearch(const float* x, const float* given) : x_(x) {
    weigh<Fit>(x, given, weights_);
    min_ = max_ = x[0];
    for (int j = 0; j < Fit::kGroup; ++j) {
      min_ = std::min(min_, x[j]);
      max_ = std::max(max_, x[j]);
      sum_w_ += weights_[j];
      sum_x_ += weights_[j] * x[j];
    }
    min_ = std::min(min_, 0.0F);
  }

  // ggml stores the magnitude of the min.
  void run(int g, Fits& fits) {
    if (max_ != min_) {
      code_scale_ = Fit::kMost / (max_ - min_);
      code_base_ = min_;
      scale_ = 1 / code_scale_;
      choose_codes(code_scale_);
      error_ = error(scale_, min_);
      for (int step = 0; step <= Fit::kSteps; ++step)
        try_scale((Fit::kFirst + Fit::kStep * number(step) + Fit::kMost) / (max_ - min_));
    }
    fits.scale[g] = scale_;
    fits.weight[g] = sum_w_;
    fits.min[g] = -min_;
    fits.code_scale[g] = code_scale_;
    fits.code_base[g] = code_base_;
  }

 private:
  void choose_codes(float iscale) {
    for (int j = 0; j < Fit::kGroup; ++j)
      codes_[j] = number(std::clamp(nearest(iscale * (x_[j] - min_)), 0, Fit::kMost));
  }

  float error(float scale, float min) const {
    float sum = 0;
    for (int j = 0; j < Fit::kGroup; ++j) {
      const float difference = scale * codes_[j] + min - x_[j];
      sum += weights_[j] * (Fit::kAbsolute ? std::fabs(difference) : difference * difference);
    }
    return sum;
  }

  // Computes the codes that `iscale` gives and the line through them by least squares, and keeps the line if it is
  // nearer than the best one so far. A new best line moves the min, and with it all scales that are still to be tried.
  void try_scale(float iscale) {
    choose_codes(iscale);
    float sum_l = 0, sum_l2 = 0, sum_xl = 0;
    for (int j = 0; j < Fit::kGroup; ++j) {
      const float wl = weights_[j] * codes_[j];
      sum_l += wl;
      sum_l2 += wl * codes_[j];
      sum_xl += wl * x_[j];
    }
    const float determinant = sum_w_ * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0)) return;
    float scale = (sum_w_ * sum_xl - sum_x_ * sum_l) / determinant;
    float min = (sum_l2 * sum_x_ - sum_l * sum_xl) / determinant;
    if (min > 0) {
      min = 0;
      scale = sum_xl / sum_l2;
    }
    const float this_error = error(scale, min);
    if (!(this_error < error_)) return;
    error_ = this_error;
    code_scale_ = iscale;
    code_base_ = min_;
    scale_ = scale;
    min_ = min;
  }

  const float* x_;
  float weights_[Fit::kGroup];
  float codes_[Fit::kGroup];
  float min_, max_, sum_w_ = 0, sum_x_ = 0;
  float error_ = 0, scale_ = 0, code_scale_ = 0, code_base_ = 0;
};

// One group fitted by codes from -kMost to kMost - 1 times a scale. The first guess makes the farthest number -kMost;
// the other guesses are up to nine tenths off.
template <int kGroup, int kMost>
class AroundZero {
 public:
  AroundZero(const float* x, const float* weights) : x_(x), weights_(weights) {}

  ScaleFit run() const {
    ScaleFit fit;
    const float farthest = farthest_from_zero(x_, kGroup);
    if (std::fabs(farthest) < kSmallestMagnitude) return fit;
    fit.code_scale = -kMost / farthest;
    const WeightedSums first = sums_for(fit.code_scale);
    fit.scale = first.l2 != 0 ? first.xl / first.l2 : 0;
    float best = fit.scale * first.xl;
    for (int i = -9; i <= 9; ++i) {
      if (i == 0) continue;
      const float iscale = -(kMost + 0.1F * number(i)) / farthest;
      const WeightedSums sums = sums_for(iscale);
      if (!(sums.l2 > 0 && sums.xl * sums.xl > best * sums.l2)) continue;
      fit = {sums.xl / sums.l2, iscale};
      best = fit.scale * sums.xl;
    }
    return fit;
  }

 private:
  WeightedSums sums_for(float iscale) const {
    WeightedSums sums;
    for (int j = 0; j < kGroup; ++j)
      sums.add(weights_[j], x_[j], number(std::clamp(nearest(iscale * x_[j]), -kMost, kMost - 1)));
    return sums;
  }

  const float* x_;
  const float* weights_;
};

// The weights of elements for which no others are given.
template <std::size_t kCount>
struct SquareWeights {
  explicit SquareWeights(const float* x) {
    for (std::size_t j = 0; j < kCount; ++j) weights[j] = x[j] * x[j];
  }
  float weights[kCount];
};

struct PlainSearch {
  template <class Fit>
  static void fit_from_min(const float* x, const float* weights, Fits& fits) {
    for (int g = 0; g < 256 / Fit::kGroup; ++g)
      MinSearch<Fit>(x + g * Fit::kGroup, Fit::kGiven ? weights + g * Fit::kGroup : nullptr).run(g, fits);
  }

  static void fit_around_zero(const float* x, const float* weights, Fits& fits) {
    if (weights == nullptr) return fit_around_zero(x, SquareWeights<256>(x).weights, fits);
    for (int g = 0; g < 16; ++g) {
      const ScaleFit fit = AroundZero<16, 32>(x + 16 * g, weights + 16 * g).run();
      fits.scale[g] = fit.scale;
      fits.code_scale[g] = fit.code_scale;
    }
  }

  // Each code is changed as long as the change makes the fit better, at most five times.
  static void refine_around_zero(const float* x, Fits& fits, std::uint8_t* codes) {
    for (int g = 0; g < 16; ++g, x += 16, codes += 16) {
      fits.scale[g] = 0;
      std::memset(codes, 0, 16);
      const float farthest = farthest_from_zero(x, 16);
      if (std::fabs(farthest) < kSmallestMagnitude) continue;
      const float iscale = -4 / farthest;
      float l[16];
      WeightedSums sums;
      for (int j = 0; j < 16; ++j) {
        l[j] = number(std::clamp(nearest(iscale * x[j]), -4, 3));
        sums.add(x[j] * x[j], x[j], l[j]);
      }
      for (int round = 0; round < 5; ++round) {
        if (!refine_once(x, l, sums)) break;
      }
      for (int j = 0; j < 16; ++j) codes[j] = static_cast<std::uint8_t>(static_cast<int>(l[j]) + 4);
      fits.scale[g] = sums.l2 > 0 ? sums.xl / sums.l2 : 0;
    }
  }

  static bool refine_once(const float* x, float* l, WeightedSums& sums) {
    bool is_changed = false;
    for (int j = 0; j < 16; ++j) {
      const float w = x[j] * x[j];
      WeightedSums others = {sums.xl - w * x[j] * l[j], sums.l2 - w * l[j] * l[j]};
      if (!(others.xl > 0)) continue;
      const float better = number(std::clamp(nearest(x[j] * others.l2 / others.xl), -4, 3));
      if (better == l[j]) continue;
      others.add(w, x[j], better);
      if (!(others.l2 > 0 && others.xl * others.xl * sums.l2 > sums.xl * sums.xl * others.l2)) continue;
      l[j] = better;
      sums = others;
      is_changed = true;
    }
    return is_changed;
  }

  static void fit_iq4(const float* x, const float* weights, float* scales) {
    if (weights == nullptr) return fit_iq4(x, SquareWeights<256>(x).weights, scales);
    for (int g = 0; g < 8; ++g) scales[g] = iq4_scale(x + 32 * g, weights + 32 * g);
  }

  // The first guess makes the farthest number the largest magnitude with the other sign; the other guesses make it the
  // lowest value, up to seven off.
  static float iq4_scale(const float* x, const float* weights) {
    const float farthest = farthest_from_zero(x, 32);
    if (std::fabs(farthest) < kSmallestMagnitude) return 0;
    const WeightedSums first = iq4_sums(x, weights, 1 / (-farthest / kIq4Values[0]));
    float scale = first.l2 > 0 ? first.xl / first.l2 : 0, best = scale * first.xl;
    for (int i = -7; i <= 7; ++i) {
      const WeightedSums sums = iq4_sums(x, weights, number(i + kIq4Values[0]) / farthest);
      if (!(sums.l2 > 0 && sums.xl * sums.xl > best * sums.l2)) continue;
      scale = sums.xl / sums.l2;
      best = scale * sums.xl;
    }
    return scale;
  }

  static WeightedSums iq4_sums(const float* x, const float* weights, float id) {
    WeightedSums sums;
    for (int j = 0; j < 32; ++j) {
      const float q = number(kIq4Values[iq4_code(id * x[j])]);
      // Not WeightedSums::add, because the code is multiplied first here.
      sums.xl += weights[j] * q * x[j];
      sums.l2 += weights[j] * q * q;
    }
    return sums;
  }

  template <int kLow, int kHigh>
  static void divided(const float* x, int count, float add, float d, std::uint8_t* codes) {
    for (int j = 0; j < count; ++j)
      codes[j] = static_cast<std::uint8_t>(std::clamp(nearest((x[j] + add) / d), kLow, kHigh) - kLow);
  }

  template <int kLow, int kHigh>
  static void multiplied(const float* x, int count, float base, float iscale, std::uint8_t* codes) {
    for (int j = 0; j < count; ++j)
      codes[j] = static_cast<std::uint8_t>(std::clamp(nearest(iscale * (x[j] - base)), kLow, kHigh) - kLow);
  }

  static void iq4_codes(const float* x, float id, std::uint8_t* codes) {
    for (int j = 0; j < 32; ++j) codes[j] = iq4_code(id * x[j]);
  }
};

inline void to_iq4_nl_with(const float* x, const float* weights, std::uint8_t* out) {
  put_iq4_nl<PlainSearch>(x, PlainSearch::iq4_scale(x, weights), out);
}
inline void to_iq4_nl(const float* x, std::uint8_t* out) { to_iq4_nl_with(x, SquareWeights<32>(x).weights, out); }

}  // namespace ballast::kernels::plain
