// The searches of encode_plain_k.hpp and encode_plain_weighted.hpp for kLanes groups at once, for one instruction set.
// Included as encode_inl.hpp is.
//
// If plain code would stop for a group, its lane still runs, and the lane's results are not used.
#if defined(BALLAST_GGML_ENCODE_SEARCH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BALLAST_GGML_ENCODE_SEARCH_INL
#undef BALLAST_GGML_ENCODE_SEARCH_INL
#else
#define BALLAST_GGML_ENCODE_SEARCH_INL
#endif

#include "kernels/ggml/encode_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

struct Sums {
  Floats xl, l2;

  HWY_INLINE void add(Floats weight, Floats x, Floats l) {
    xl = hn::Add(xl, hn::Mul(hn::Mul(weight, x), l));
    l2 = hn::Add(l2, hn::Mul(hn::Mul(weight, l), l));
  }
};
HWY_INLINE Sums no_sums() { return {hn::Zero(F32()), hn::Zero(F32())}; }

// The best scale so far. A scale is better if it explains more of the groups.
struct Best {
  Floats scale, explained;

  explicit Best(const Sums& first, Mask has_scale)
      : scale(hn::IfThenElseZero(has_scale, hn::Div(first.xl, first.l2))), explained(hn::Mul(scale, first.xl)) {}
  explicit Best(Floats first) : scale(first), explained(hn::Zero(F32())) {}

  HWY_INLINE Mask improve(const Sums& sums) {
    const Mask is_better =
        hn::And(hn::Gt(sums.l2, hn::Zero(F32())), hn::Gt(hn::Mul(sums.xl, sums.xl), hn::Mul(explained, sums.l2)));
    scale = hn::IfThenElse(is_better, hn::Div(sums.xl, sums.l2), scale);
    explained = hn::IfThenElse(is_better, hn::Mul(scale, sums.xl), explained);
    return is_better;
  }
};

// The terms of the sums of kLanes groups, which begin kApart elements apart. The weights are the squares if there are
// no others.
template <std::size_t kGroup, std::size_t kApart = kGroup>
struct Groups {
  Groups(const float* from, const float* weights) {
    Floats magnitude = hn::Zero(F32());
    farthest = hn::Zero(F32());
    across_groups<kGroup, kApart>(from, [&](std::size_t j, Floats element) {
      const Mask is_farther = hn::Gt(hn::Abs(element), magnitude);
      magnitude = hn::IfThenElse(is_farther, hn::Abs(element), magnitude);
      farthest = hn::IfThenElse(is_farther, element, farthest);
      x.set(j, element);
      weight.set(j, hn::Mul(element, element));
    });
    if (weights != nullptr) weight.template fill<kApart>(weights);
    is_zero = hn::Lt(magnitude, all(plain::kSmallestMagnitude));
  }

  Across<kGroup> x, weight;
  Floats farthest;
  Mask is_zero;
};

struct ScaleFits {
  Floats scale, code_scale;  // as in plain::Fits
};

// plain::AroundZero
template <int kMost, std::size_t kGroup, std::size_t kApart>
HWY_INLINE ScaleFits fit_groups_around_zero(const Groups<kGroup, kApart>& groups) {
  const auto sums_for = [&](Floats iscale) {
    Sums sums = no_sums();
    for (std::size_t j = 0; j < kGroup; ++j) {
      const Ints l = nearest_within<-kMost, kMost - 1>(hn::Mul(iscale, groups.x[j]));
      sums.add(groups.weight[j], groups.x[j], hn::ConvertTo(F32(), l));
    }
    return sums;
  };
  Floats code_scale = hn::Div(all(-kMost), groups.farthest);
  const Sums first = sums_for(code_scale);
  Best best(first, hn::Not(hn::Eq(first.l2, hn::Zero(F32()))));
  for (int i = -9; i <= 9; ++i) {
    if (i == 0) continue;
    const Floats iscale = hn::Div(all(-(kMost + 0.1F * static_cast<float>(i))), groups.farthest);
    code_scale = hn::IfThenElse(best.improve(sums_for(iscale)), iscale, code_scale);
  }
  return {hn::IfThenZeroElse(groups.is_zero, best.scale), hn::IfThenZeroElse(groups.is_zero, code_scale)};
}

// plain::PositiveSearch
template <std::size_t kCount, int kMost>
class PositiveSearches {
 public:
  template <std::size_t kApart>
  static PositiveSearches of(const float* x, const float* weights) {
    PositiveSearches searches;
    searches.x_.template fill<kApart>(x);
    searches.weights_.template fill<kApart>(weights);
    return searches;
  }

  // The scales.
  Floats run() {
    Floats most = hn::Zero(F32());
    for (std::size_t j = 0; j < kCount; ++j) most = hn::IfThenElse(hn::Gt(x_[j], most), x_[j], most);
    is_zero_ = hn::Lt(most, all(plain::kSmallestMagnitude));
    const Floats iscale = best_inverse(most);
    Sums sums = no_sums();
    for (std::size_t j = 0; j < kCount; ++j) {
      const Ints l = code(hn::Mul(iscale, x_[j]));
      codes_.set(j, hn::ConvertTo(F32(), wrapped(l)));
      sums.add(weights_[j], x_[j], hn::ConvertTo(F32(), l));
    }
    for (int round = 0; round < 5; ++round) {
      if (!refine_once(sums)) break;
    }
    const Mask has_scale = hn::AndNot(is_zero_, hn::Gt(sums.l2, hn::Zero(F32())));
    return hn::IfThenElseZero(has_scale, hn::Div(sums.xl, sums.l2));
  }

  // The codes of number j.
  Ints codes(std::size_t j) const { return hn::ConvertTo(I32(), hn::IfThenZeroElse(is_zero_, codes_[j])); }

 private:
  static HWY_INLINE Ints code(Floats value) { return hn::Min(nearest(value), hn::Set(I32(), kMost)); }
  static HWY_INLINE Ints wrapped(Ints code) { return hn::And(code, hn::Set(I32(), 255)); }

  Floats best_inverse(Floats most) const {
    Floats best = hn::Div(all(kMost), most);
    Floats least = error(hn::Div(all(1), best), [&](Floats x) { return wrapped(nearest(hn::Mul(best, x))); });
    for (int i = -4; i <= 4; ++i) {
      if (i == 0) continue;
      const Floats iscale = hn::Div(all(0.1F * static_cast<float>(i) + kMost), most);
      const Floats this_error = error(hn::Div(all(1), iscale), [&](Floats x) { return code(hn::Mul(iscale, x)); });
      const Mask is_better = hn::Lt(this_error, least);
      least = hn::IfThenElse(is_better, this_error, least);
      best = hn::IfThenElse(is_better, iscale, best);
    }
    return best;
  }

  template <class Code>
  HWY_INLINE Floats error(Floats scale, Code code_of) const {
    Floats sum = hn::Zero(F32());
    for (std::size_t j = 0; j < kCount; ++j) {
      const Floats difference = hn::Sub(x_[j], hn::Mul(scale, hn::ConvertTo(F32(), code_of(x_[j]))));
      sum = hn::Add(sum, hn::Mul(hn::Mul(weights_[j], difference), difference));
    }
    return sum;
  }

  // A group that is done does not change in further rounds, so it may wait for the others.
  HWY_INLINE bool refine_once(Sums& sums) {
    const Floats zero = hn::Zero(F32());
    Mask any = hn::Lt(zero, zero);
    for (std::size_t j = 0; j < kCount; ++j) {
      const Floats l = codes_[j], w = weights_[j], wx = hn::Mul(w, x_[j]);
      Sums others = {hn::Sub(sums.xl, hn::Mul(wx, l)), hn::Sub(sums.l2, hn::Mul(hn::Mul(w, l), l))};
      const Mask is_positive = hn::And(hn::Gt(others.xl, zero), hn::Gt(others.l2, zero));
      const Ints better = code(hn::Div(hn::Mul(x_[j], others.l2), others.xl));
      const Floats better_l = hn::ConvertTo(F32(), better);
      const Mask is_other = hn::And(is_positive, hn::Ne(better_l, l));
      if (hn::AllFalse(F32(), is_other)) continue;
      others.add(w, x_[j], better_l);
      const Floats explained = hn::Mul(hn::Mul(others.xl, others.xl), sums.l2);
      const Mask change = hn::And(is_other, hn::Gt(explained, hn::Mul(hn::Mul(sums.xl, sums.xl), others.l2)));
      codes_.set(j, hn::IfThenElse(change, hn::ConvertTo(F32(), wrapped(better)), l));
      sums.xl = hn::IfThenElse(change, others.xl, sums.xl);
      sums.l2 = hn::IfThenElse(change, others.l2, sums.l2);
      any = hn::Or(any, change);
    }
    return !hn::AllFalse(F32(), any);
  }

  Across<kCount> x_, weights_, codes_;
  Mask is_zero_;
};

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#endif
