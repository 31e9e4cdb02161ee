// plain::MinSearch for kLanes groups at once, for one instruction set. Included as encode_inl.hpp is.
#if defined(BALLAST_GGML_ENCODE_MIN_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BALLAST_GGML_ENCODE_MIN_INL
#undef BALLAST_GGML_ENCODE_MIN_INL
#else
#define BALLAST_GGML_ENCODE_MIN_INL
#endif

#include "kernels/ggml/encode_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

// If plain code would stop for a group, its lane still runs, and the lane's results are not used.
template <class Fit>
class MinSearches {
 public:
  MinSearches(const float* x, const float* given) {
    x_.fill(x);
    if constexpr (Fit::kGiven)
      weights_.fill(given);
    else
      weigh();
    sum_w_ = sum_x_ = hn::Zero(F32());
    min_ = max_ = x_[0];
    for (std::size_t j = 0; j < kGroup; ++j) {
      min_ = hn::IfThenElse(hn::Lt(x_[j], min_), x_[j], min_);  // keeps the sign of the first zero
      max_ = hn::Max(x_[j], max_);
      sum_w_ = hn::Add(sum_w_, weights_[j]);
      sum_x_ = hn::Add(sum_x_, hn::Mul(weights_[j], x_[j]));
    }
    min_ = hn::IfThenElse(hn::Gt(min_, hn::Zero(F32())), hn::Zero(F32()), min_);
  }

  void run(std::size_t g, plain::Fits& fits) {
    const Mask is_flat = hn::Eq(max_, min_);
    const Floats first_min = min_;
    code_base_ = min_;
    code_scale_ = hn::Div(all(Fit::kMost), hn::Sub(max_, min_));
    scale_ = hn::Div(all(1), code_scale_);
    choose_codes(code_scale_);
    error_ = error(scale_, min_);
    for (int step = 0; step <= Fit::kSteps; ++step)
      try_scale(hn::Div(all(Fit::kFirst + Fit::kStep * static_cast<float>(step) + Fit::kMost), hn::Sub(max_, min_)));
    hn::Store(hn::IfThenZeroElse(is_flat, scale_), F32(), fits.scale + g);
    hn::Store(sum_w_, F32(), fits.weight + g);
    hn::Store(hn::Neg(hn::IfThenElse(is_flat, first_min, min_)), F32(), fits.min + g);
    hn::Store(hn::IfThenZeroElse(is_flat, code_scale_), F32(), fits.code_scale + g);
    hn::Store(hn::IfThenZeroElse(is_flat, code_base_), F32(), fits.code_base + g);
  }

 private:
  static constexpr std::size_t kGroup = Fit::kGroup;

  void weigh() {
    Floats mean = hn::Zero(F32());
    if constexpr (!Fit::kAbsolute) {
      Floats squares = hn::Zero(F32());
      for (std::size_t j = 0; j < kGroup; ++j) squares = hn::Add(squares, hn::Mul(x_[j], x_[j]));
      mean = hn::Sqrt(hn::Div(squares, all(kGroup)));
    }
    for (std::size_t j = 0; j < kGroup; ++j) weights_.set(j, hn::Add(mean, hn::Abs(x_[j])));
  }

  HWY_INLINE Floats code(std::size_t j, Floats iscale) const {
    const Floats scaled = hn::Mul(iscale, hn::Sub(x_[j], min_));
    return hn::ConvertTo(F32(), nearest_within<0, Fit::kMost>(scaled));
  }

  HWY_INLINE void choose_codes(Floats iscale) {
    for (std::size_t j = 0; j < kGroup; ++j) codes_.set(j, code(j, iscale));
  }

  HWY_INLINE Floats error(Floats scale, Floats min) const {
    Floats sum = hn::Zero(F32());
    for (std::size_t j = 0; j < kGroup; ++j) {
      const Floats difference = hn::Sub(hn::Add(hn::Mul(scale, codes_[j]), min), x_[j]);
      const Floats size = Fit::kAbsolute ? hn::Abs(difference) : hn::Mul(difference, difference);
      sum = hn::Add(sum, hn::Mul(weights_[j], size));
    }
    return sum;
  }

  HWY_INLINE void try_scale(Floats iscale) {
    Floats sum_l = hn::Zero(F32()), sum_l2 = sum_l, sum_xl = sum_l;
    for (std::size_t j = 0; j < kGroup; ++j) {
      const Floats l = code(j, iscale), wl = hn::Mul(weights_[j], l);
      codes_.set(j, l);
      sum_l = hn::Add(sum_l, wl);
      sum_l2 = hn::Add(sum_l2, hn::Mul(wl, l));
      sum_xl = hn::Add(sum_xl, hn::Mul(wl, x_[j]));
    }
    const Floats determinant = hn::Sub(hn::Mul(sum_w_, sum_l2), hn::Mul(sum_l, sum_l));
    Floats scale = hn::Div(hn::Sub(hn::Mul(sum_w_, sum_xl), hn::Mul(sum_x_, sum_l)), determinant);
    Floats min = hn::Div(hn::Sub(hn::Mul(sum_l2, sum_x_), hn::Mul(sum_l, sum_xl)), determinant);
    const Mask is_above_zero = hn::Gt(min, hn::Zero(F32()));
    min = hn::IfThenZeroElse(is_above_zero, min);
    scale = hn::IfThenElse(is_above_zero, hn::Div(sum_xl, sum_l2), scale);
    const Floats this_error = error(scale, min);
    const Mask is_better = hn::And(hn::Gt(determinant, hn::Zero(F32())), hn::Lt(this_error, error_));
    error_ = hn::IfThenElse(is_better, this_error, error_);
    code_scale_ = hn::IfThenElse(is_better, iscale, code_scale_);
    code_base_ = hn::IfThenElse(is_better, min_, code_base_);
    scale_ = hn::IfThenElse(is_better, scale, scale_);
    min_ = hn::IfThenElse(is_better, min, min_);
  }

  Across<kGroup> x_, weights_, codes_;
  Floats min_, max_, sum_w_, sum_x_;
  Floats error_, scale_, code_scale_, code_base_;
};

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#endif
