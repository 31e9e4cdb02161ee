#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_around_zero.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_search_inl.hpp"

// The searches for scales without mins: Q3_K, Q6_K, IQ4_NL, IQ4_XS.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_around_zero_on_target(DType type, const float* in, const float* weights, std::size_t count,
                                  std::uint8_t* out) {
  encode_plainly(type, in, weights, count, out);
}
#else

void q6_scales(const float* x, const float* weights, std::size_t g, plain::Fits& fits) {
  const Groups<16> groups(x + 16 * g, weights == nullptr ? nullptr : weights + 16 * g);
  const ScaleFits found = fit_groups_around_zero<32>(groups);
  hn::Store(found.scale, F32(), fits.scale + g);
  hn::Store(found.code_scale, F32(), fits.code_scale + g);
}

// kLanes groups of Q3_K, refined as plain::PlainSearch refines them.
class Q3Groups {
 public:
  explicit Q3Groups(const float* x) : groups_(x, nullptr), sums_(no_sums()) {
    const Floats iscale = hn::IfThenZeroElse(groups_.is_zero, hn::Div(all(-4), groups_.farthest));
    for (std::size_t j = 0; j < 16; ++j) {
      const Floats l = hn::ConvertTo(F32(), nearest_within<-4, 3>(hn::Mul(iscale, groups_.x[j])));
      codes_.set(j, l);
      sums_.add(groups_.weight[j], groups_.x[j], l);
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
void iq4_scales(const float* x, const float* weights, float* scales) {
  const Groups<32> groups(x, weights);
  constexpr float kLowest = kIq4Values[0];
  const Sums first = iq4_sums(groups, hn::Div(all(1), hn::Div(hn::Neg(groups.farthest), all(kLowest))));
  Best best(first, hn::Gt(first.l2, hn::Zero(F32())));
  for (int i = -7; i <= 7; ++i)
    best.improve(iq4_sums(groups, hn::Div(all(static_cast<float>(i) + kLowest), groups.farthest)));
  hn::StoreU(hn::IfThenZeroElse(groups.is_zero, best.scale), F32(), scales);
}

struct Search : GroupCodes {
  static void fit_around_zero(const float* x, const float* weights, plain::Fits& fits) {
    for (std::size_t g = 0; g < 16; g += kLanes) q6_scales(x, weights, g, fits);
  }
  static void refine_around_zero(const float* x, plain::Fits& fits, std::uint8_t* codes) {
    for (std::size_t g = 0; g < 16; g += 2 * kLanes) q3_scales(x + 16 * g, fits.scale + g, codes + 16 * g);
  }
  static void fit_iq4(const float* x, const float* weights, float* scales) {
    for (std::size_t g = 0; g < 8; g += kLanes)
      iq4_scales(x + 32 * g, weights == nullptr ? nullptr : weights + 32 * g, scales + g);
  }
  static void iq4_codes(const float* x, float id, std::uint8_t* codes) {
    each_code(x, 32, codes, [&](Floats values) { return iq4_code(hn::Mul(all(id), values)); });
  }
};

// A block is one group, so as many blocks as there are lanes are encoded at once.
void encode_iq4_nl(const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  alignas(64) float scales[kLanes];
  for (; count >= kLanes; count -= kLanes) {
    iq4_scales(in, weights, scales);
    for (std::size_t i = 0; i < kLanes; ++i, in += 32, out += 18) plain::put_iq4_nl<Search>(in, scales[i], out);
    if (weights != nullptr) weights += 32 * kLanes;
  }
  encode_plainly(DType::iq4_nl, in, weights, count, out);
}

template <plain::EncodeWeightedBlock kEncode>
void encode_each_with(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  for (; count > 0; --count, in += 256, out += info(type).block_bytes) {
    kEncode(in, weights, out);
    if (weights != nullptr) weights += 256;
  }
}

void encode_around_zero_on_target(DType type, const float* in, const float* weights, std::size_t count,
                                  std::uint8_t* out) {
  switch (type) {
    case DType::q3_k: return encode_each<plain::to_q3_k<Search> >(type, in, count, out);
    case DType::q6_k: return encode_each_with<plain::to_q6_k_with<Search> >(type, in, weights, count, out);
    case DType::iq4_xs: return encode_each_with<plain::to_iq4_xs_with<Search> >(type, in, weights, count, out);
    default: return encode_iq4_nl(in, weights, count, out);
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

void encode_around_zero(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_around_zero_on_target)(type, in, weights, count, out);
}

}  // namespace ballast::kernels
#endif
