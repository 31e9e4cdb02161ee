#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_around_zero.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_inl.hpp"

// The searches for scales without mins: Q3_K, Q6_K, IQ4_NL, IQ4_XS.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_around_zero_on_target(DType type, const float* in, std::size_t count, std::uint8_t* out) {
  encode_plainly(type, in, count, out);
}
#else

// The terms of the sums of kLanes groups. If a group counts as zeros, its lane still runs, and its result is not used.
template <std::size_t kGroup>
struct Groups {
  explicit Groups(const float* from) {
    Floats magnitude = hn::Zero(F32());
    farthest = hn::Zero(F32());
    across_groups<kGroup>(from, [&](std::size_t j, Floats element) {
      const Mask is_farther = hn::Gt(hn::Abs(element), magnitude);
      magnitude = hn::Max(magnitude, hn::Abs(element));
      farthest = hn::IfThenElse(is_farther, element, farthest);
      x.set(j, element);
      weight.set(j, hn::Mul(element, element));
    });
    is_zero = hn::Lt(magnitude, all(plain::kSmallestMagnitude));
  }

  Across<kGroup> x, weight;
  Floats farthest;
  Mask is_zero;
};

struct Sums {
  Floats xl, l2;
};
HWY_INLINE Sums no_sums() { return {hn::Zero(F32()), hn::Zero(F32())}; }

// The best scale so far. A scale is better if it explains more of the groups.
struct Best {
  Floats scale, explained;

  explicit Best(const Sums& first, Mask has_scale)
      : scale(hn::IfThenElseZero(has_scale, hn::Div(first.xl, first.l2))), explained(hn::Mul(scale, first.xl)) {}

  HWY_INLINE Mask improve(const Sums& sums) {
    const Mask is_better =
        hn::And(hn::Gt(sums.l2, hn::Zero(F32())), hn::Gt(hn::Mul(sums.xl, sums.xl), hn::Mul(explained, sums.l2)));
    scale = hn::IfThenElse(is_better, hn::Div(sums.xl, sums.l2), scale);
    explained = hn::IfThenElse(is_better, hn::Mul(scale, sums.xl), explained);
    return is_better;
  }
};

HWY_INLINE Sums q6_sums(const Groups<16>& groups, Floats iscale) {
  Sums sums = no_sums();
  for (std::size_t j = 0; j < 16; ++j) {
    const Floats l = hn::ConvertTo(F32(), nearest_within<-32, 31>(hn::Mul(iscale, groups.x[j])));
    sums.xl = hn::Add(sums.xl, hn::Mul(hn::Mul(groups.weight[j], groups.x[j]), l));
    sums.l2 = hn::Add(sums.l2, hn::Mul(hn::Mul(groups.weight[j], l), l));
  }
  return sums;
}

void q6_scales(const float* x, std::size_t g, plain::Fits& fits) {
  const Groups<16> groups(x + 16 * g);
  Floats code_scale = hn::Div(all(-32), groups.farthest);
  const Sums first = q6_sums(groups, code_scale);
  Best best(first, hn::Ne(first.l2, hn::Zero(F32())));
  for (int i = -9; i <= 9; ++i) {
    if (i == 0) continue;
    const Floats iscale = hn::Div(all(-(32 + 0.1F * static_cast<float>(i))), groups.farthest);
    code_scale = hn::IfThenElse(best.improve(q6_sums(groups, iscale)), iscale, code_scale);
  }
  hn::Store(hn::IfThenZeroElse(groups.is_zero, best.scale), F32(), fits.scale + g);
  hn::Store(hn::IfThenZeroElse(groups.is_zero, code_scale), F32(), fits.code_scale + g);
}

// kLanes groups of Q3_K, refined as plain::PlainSearch refines them.
class Q3Groups {
 public:
  explicit Q3Groups(const float* x) : groups_(x), sums_(no_sums()) {
    const Floats iscale = hn::IfThenZeroElse(groups_.is_zero, hn::Div(all(-4), groups_.farthest));
    for (std::size_t j = 0; j < 16; ++j) {
      const Floats l = hn::ConvertTo(F32(), nearest_within<-4, 3>(hn::Mul(iscale, groups_.x[j])));
      codes_.set(j, l);
      sums_.xl = hn::Add(sums_.xl, hn::Mul(hn::Mul(groups_.weight[j], groups_.x[j]), l));
      sums_.l2 = hn::Add(sums_.l2, hn::Mul(hn::Mul(groups_.weight[j], l), l));
    }
  }

  // Returns whether code j of any of the groups was changed.
  HWY_INLINE bool refine(std::size_t j) {
    const Floats zero = hn::Zero(F32());
    const Floats l = codes_[j], w = groups_.weight[j], wx = hn::Mul(w, groups_.x[j]);
    Floats xl = hn::Sub(sums_.xl, hn::Mul(wx, l)), l2 = hn::Sub(sums_.l2, hn::Mul(hn::Mul(w, l), l));
    const Floats better = hn::ConvertTo(F32(), nearest_within<-4, 3>(hn::Div(hn::Mul(groups_.x[j], l2), xl)));
    const Mask is_other = hn::And(hn::Gt(xl, zero), hn::Ne(better, l));
    if (hn::AllFalse(F32(), is_other)) return false;
    xl = hn::Add(xl, hn::Mul(wx, better));
    l2 = hn::Add(l2, hn::Mul(hn::Mul(w, better), better));
    const Floats explained = hn::Mul(hn::Mul(xl, xl), sums_.l2);
    const Mask is_nearer = hn::Gt(explained, hn::Mul(hn::Mul(sums_.xl, sums_.xl), l2));
    const Mask change = hn::And(is_other, hn::And(hn::Gt(l2, zero), is_nearer));
    codes_.set(j, hn::IfThenElse(change, better, l));
    sums_.xl = hn::IfThenElse(change, xl, sums_.xl);
    sums_.l2 = hn::IfThenElse(change, l2, sums_.l2);
    return !hn::AllFalse(F32(), change);
  }

  void put(float* scales, std::uint8_t* codes) const {
    const Mask has_scale = hn::AndNot(groups_.is_zero, hn::Gt(sums_.l2, hn::Zero(F32())));
    hn::Store(hn::IfThenElseZero(has_scale, hn::Div(sums_.xl, sums_.l2)), F32(), scales);
    for (std::size_t j = 0; j < 16; ++j) {
      alignas(64) float lanes[kLanes];
      hn::Store(hn::IfThenZeroElse(groups_.is_zero, hn::Add(codes_[j], all(4))), F32(), lanes);
      for (std::size_t i = 0; i < kLanes; ++i) codes[16 * i + j] = static_cast<std::uint8_t>(lanes[i]);
    }
  }

 private:
  Groups<16> groups_;
  Across<16> codes_;
  Sums sums_;
};

// Refines two sets of groups at a time, because each step of one set waits for the step before. A group that is done
// does not change in further rounds, so it may wait for the others.
void q3_scales(const float* x, float* scales, std::uint8_t* codes) {
  Q3Groups a(x), b(x + 16 * kLanes);
  for (int round = 0; round < 5; ++round) {
    bool is_changed = false;
    for (std::size_t j = 0; j < 16; ++j) {
      const bool a_changed = a.refine(j), b_changed = b.refine(j);
      is_changed = is_changed || a_changed || b_changed;
    }
    if (!is_changed) break;
  }
  a.put(scales, codes);
  b.put(scales + kLanes, codes + 16 * kLanes);
}

// The vector code of plain::iq4_code.
HWY_INLINE Ints iq4_code(Floats value) {
  const I32 d;
  Ints code = hn::Set(d, 15);
  for (const float border : plain::kIq4Borders)
    code = hn::Add(code, hn::BitCast(d, hn::VecFromMask(F32(), hn::Lt(value, all(border)))));
  return code;
}

// The codes are looked up as bytes: the highest byte of each lane is the value.
HWY_INLINE Floats iq4_value(Ints code) {
  const hn::Repartition<std::uint8_t, I32> d8;
  const auto table = hn::LoadDup128(d8, reinterpret_cast<const std::uint8_t*>(kIq4Values.data()));
  const auto found = hn::TableLookupBytes(table, hn::BitCast(d8, hn::ShiftLeft<24>(code)));
  return hn::ConvertTo(F32(), hn::ShiftRight<24>(hn::BitCast(I32(), found)));
}

HWY_INLINE Sums iq4_sums(const Groups<32>& groups, Floats id) {
  Sums sums = no_sums();
  for (std::size_t j = 0; j < 32; ++j) {
    const Floats q = iq4_value(iq4_code(hn::Mul(id, groups.x[j]))), wq = hn::Mul(groups.weight[j], q);
    sums.xl = hn::Add(sums.xl, hn::Mul(wq, groups.x[j]));
    sums.l2 = hn::Add(sums.l2, hn::Mul(wq, q));
  }
  return sums;
}

// The scales of kLanes groups.
void iq4_scales(const float* x, float* scales) {
  const Groups<32> groups(x);
  constexpr float kLowest = kIq4Values[0];
  const Sums first = iq4_sums(groups, hn::Div(all(1), hn::Div(hn::Neg(groups.farthest), all(kLowest))));
  Best best(first, hn::Gt(first.l2, hn::Zero(F32())));
  for (int i = -7; i <= 7; ++i)
    best.improve(iq4_sums(groups, hn::Div(all(static_cast<float>(i) + kLowest), groups.farthest)));
  hn::StoreU(hn::IfThenZeroElse(groups.is_zero, best.scale), F32(), scales);
}

struct Search : GroupCodes {
  static void fit_around_zero(const float* x, plain::Fits& fits) {
    for (std::size_t g = 0; g < 16; g += kLanes) q6_scales(x, g, fits);
  }
  static void refine_around_zero(const float* x, plain::Fits& fits, std::uint8_t* codes) {
    for (std::size_t g = 0; g < 16; g += 2 * kLanes) q3_scales(x + 16 * g, fits.scale + g, codes + 16 * g);
  }
  static void fit_iq4(const float* x, float* scales) {
    for (std::size_t g = 0; g < 8; g += kLanes) iq4_scales(x + 32 * g, scales + g);
  }
  static void iq4_codes(const float* x, float id, std::uint8_t* codes) {
    each_code(x, 32, codes, [&](Floats values) { return iq4_code(hn::Mul(all(id), values)); });
  }
};

// A block is one group, so as many blocks as there are lanes are encoded at once.
void encode_iq4_nl(const float* in, std::size_t count, std::uint8_t* out) {
  alignas(64) float scales[kLanes];
  for (; count >= kLanes; count -= kLanes) {
    iq4_scales(in, scales);
    for (std::size_t i = 0; i < kLanes; ++i, in += 32, out += 18) plain::put_iq4_nl<Search>(in, scales[i], out);
  }
  encode_plainly(DType::iq4_nl, in, count, out);
}

void encode_around_zero_on_target(DType type, const float* in, std::size_t count, std::uint8_t* out) {
  switch (type) {
    case DType::q3_k: return encode_each<plain::to_q3_k<Search> >(type, in, count, out);
    case DType::q6_k: return encode_each<plain::to_q6_k<Search> >(type, in, count, out);
    case DType::iq4_xs: return encode_each<plain::to_iq4_xs<Search> >(type, in, count, out);
    default: return encode_iq4_nl(in, count, out);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(encode_around_zero_on_target);

void encode_around_zero(DType type, const float* in, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_around_zero_on_target)(type, in, count, out);
}

}  // namespace ballast::kernels
#endif
