#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_small.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_inl.hpp"

// Codes of a few bits for a scale that is the largest magnitude or the mean: MXFP4, NVFP4, TQ1_0, TQ2_0, Q1_0, Q2_0.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_small_on_target(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  encode_plainly(type, in, weights, count, out);
}
#else

template <std::size_t kCount>
HWY_INLINE float ternary_codes(const float* x, std::uint8_t* codes) {
  const float d = largest_magnitude<kCount>(x), id = plain::inverse(d);
  each_code(x, kCount, codes,
            [&](Floats values) { return hn::Add(rounded(hn::Mul(values, all(id))), hn::Set(I32(), 1)); });
  return d;
}

HWY_INLINE void to_tq1_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[256];
  put_f16(ternary_codes<256>(x, codes), out + 52);
  plain::pack_tq1_0(codes, out);
}

HWY_INLINE void to_tq2_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[256];
  put_f16(ternary_codes<256>(x, codes), out + 64);
  plain::pack_tq2_0(codes, out);
}

HWY_INLINE void to_q2_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[64];
  put_f16(ternary_codes<64>(x, codes), out);
  plain::pack_q2_0(codes, out + 2);
}

// The vector code of plain::fp4_code.
HWY_INLINE Ints fp4_code(Floats x, float d) {
  const I32 d32;
  const Floats magnitude = hn::Abs(x);
  Floats least = magnitude;
  Ints code = hn::Zero(d32);
  for (std::size_t i = 1; i < 8; ++i) {
    const Floats distance = hn::Abs(hn::Sub(all(static_cast<float>(kFp4Values[i]) * d), magnitude));
    const auto is_nearer = hn::RebindMask(d32, hn::Lt(distance, least));
    code = hn::IfThenElse(is_nearer, hn::Set(d32, static_cast<std::int32_t>(i)), code);
    least = hn::Min(distance, least);
  }
  const auto is_negative = hn::RebindMask(d32, hn::Lt(x, hn::Zero(F32())));
  const auto minus = hn::IfThenElseZero(is_negative, hn::Set(d32, 8));
  return hn::Or(code, hn::IfThenElseZero(hn::Gt(code, hn::Zero(d32)), minus));
}

HWY_INLINE void to_mxfp4(const float* x, std::uint8_t* out) {
  out[0] = plain::e8m0_code(largest_magnitude<32>(x));
  const float d = half_e8m0(out[0]);
  put_nibbles<16>(x, out + 1, [&](Floats values) { return fp4_code(values, d); });
}

HWY_INLINE void to_nvfp4(const float* x, std::uint8_t* out) {
  for (std::size_t g = 0; g < 4; ++g, x += 16) {
    out[g] = plain::ue4m3_code(largest_magnitude<16>(x) / 6);
    const float d = half_ue4m3(out[g]);
    put_nibbles<8>(x, out + 4 + 8 * g, [&](Floats values) { return fp4_code(values, d); });
  }
}

// A bit for each of 32 elements: whether it is zero or more.
HWY_INLINE std::uint32_t bits_of_32(const float* x) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; i += kLanes) bits |= bits_from(hn::Ge(load(x + i), hn::Zero(F32()))) << i;
  return bits;
}

// The magnitudes are added in their order, so as many blocks as there are lanes are encoded at once.
void encode_q1_0(const float* in, std::size_t count, std::uint8_t* out) {
  const F32 d;
  for (; count >= kLanes; count -= kLanes) {
    alignas(64) float means[kLanes];
    Floats sums = hn::Zero(d);
    across_groups<128>(in, [&](std::size_t, Floats element) { sums = hn::Add(sums, hn::Abs(element)); });
    hn::Store(hn::Div(sums, all(128)), d, means);
    for (std::size_t i = 0; i < kLanes; ++i, in += 128, out += 18) {
      put_f16(means[i], out);
      for (std::size_t j = 0; j < 128; j += 32) plain::put_u32(bits_of_32(in + j), out + 2 + j / 8);
    }
  }
  encode_plainly(DType::q1_0, in, nullptr, count, out);
}

void encode_small_on_target(DType type, const float* in, const float*, std::size_t count, std::uint8_t* out) {
  switch (type) {
    case DType::tq1_0: return encode_each<to_tq1_0>(type, in, count, out);
    case DType::tq2_0: return encode_each<to_tq2_0>(type, in, count, out);
    case DType::mxfp4: return encode_each<to_mxfp4>(type, in, count, out);
    case DType::nvfp4: return encode_each<to_nvfp4>(type, in, count, out);
    case DType::q2_0: return encode_each<to_q2_0>(type, in, count, out);
    default: return encode_q1_0(in, count, out);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(encode_small_on_target);

void encode_small(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_small_on_target)(type, in, weights, count, out);
}

}  // namespace ballast::kernels
#endif
