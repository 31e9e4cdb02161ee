#include "kernels/quantize.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cast.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

#ifndef BALLAST_KERNELS_QUANTIZE_ONCE
#define BALLAST_KERNELS_QUANTIZE_ONCE
namespace ballast::kernels {
namespace {

// The middles between neighbours of kNf4Values, as bitsandbytes compares with them: a value above one gets the code
// above it.
constexpr std::array kNf4Middles = {
    -0.8480964004993439F,  -0.6106329262256622F,   -0.4599952697753906F, -0.33967943489551544F, -0.23460740596055984F,
    -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F, 0.1202552504837513F,   0.2035212516784668F,
    0.2920137718319893F,   0.3893125355243683F,    0.5016634166240692F,  0.6427869200706482F,   0.8614784181118011F,
};

// The exponent of a block, by the bits of its largest magnitude. Magnitudes from 1.75 times a power of two on count as
// the next power: with an exponent that is larger by one they lose no more, and nothing is cut off. With the largest
// exponent, no code stands for infinity.
constexpr std::int32_t mxfp4_scale(std::int32_t largest) {
  return std::clamp(((largest + (1 << 21)) >> 23) - 2, 0, 252);
}

// What the values are multiplied by: 2^(127 - scale).
constexpr float mxfp4_factor(std::int32_t scale) { return std::bit_cast<float>((254 - scale) << 23); }

}  // namespace
}  // namespace ballast::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, because half a block of MXFP4 has 16 values.
using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using U8 = hn::Rebind<std::uint8_t, F32>;
using Floats = hn::VFromD<F32>;
using Ints = hn::VFromD<I32>;

std::int32_t largest_bits(const float* in, std::size_t count) {
  const I32 d;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::int32_t kMagnitude = 0x7FFFFFFF;
  Ints most = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    most = hn::Max(most, hn::And(hn::BitCast(d, hn::LoadU(F32(), in + i)), hn::Set(d, kMagnitude)));
  std::int32_t largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) largest = std::max(largest, std::bit_cast<std::int32_t>(in[i]) & kMagnitude);
  return largest;
}

void multiply(const float* in, float factor, std::size_t count, float* out) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, in + i), hn::Set(d, factor)), d, out + i);
  for (; i < count; ++i) out[i] = in[i] * factor;
}

// -1 where it is true, so that subtracting it counts.
template <class Mask>
HWY_INLINE Ints truth(Mask mask) {
  return hn::BitCast(I32(), hn::VecFromMask(F32(), mask));
}

// NaN (zero times infinity, in a block of zeros) is above nothing, and gets the lowest code, as in bitsandbytes.
HWY_INLINE Ints nf4_code(Floats value) {
  Ints code = hn::Zero(I32());
  for (const float middle : kNf4Middles) code = hn::Sub(code, truth(hn::Gt(value, hn::Set(F32(), middle))));
  return code;
}

// In the middle between two numbers, the one with an even code is taken.
HWY_INLINE Ints mxfp4_code(Floats value) {
  const I32 d;
  const Floats magnitude = hn::Abs(value);
  Ints code = hn::And(hn::ShiftRight<28>(hn::BitCast(d, value)), hn::Set(d, 8));
  for (const float middle : {0.25F, 1.25F, 2.5F, 5.0F})
    code = hn::Sub(code, truth(hn::Gt(magnitude, hn::Set(F32(), middle))));
  for (const float middle : {0.75F, 1.75F, 3.5F})
    code = hn::Sub(code, truth(hn::Ge(magnitude, hn::Set(F32(), middle))));
  return code;
}

// Two codes a byte, for kCount values times `factor`.
template <std::size_t kCount, int kFirstShift, Ints (*kCode)(Floats)>
HWY_INLINE void put_codes(const float* in, float factor, std::byte* out) {
  const F32 d;
  std::uint8_t codes[kCount];
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(d)) {
    const Ints code = kCode(hn::Mul(hn::LoadU(d, in + i), hn::Set(d, factor)));
    hn::StoreU(hn::DemoteTo(U8(), code), U8(), codes + i);
  }
  for (std::size_t i = 0; i < kCount / 2; ++i)
    out[i] = static_cast<std::byte>(codes[2 * i] << kFirstShift | codes[2 * i + 1] << (4 - kFirstShift));
}

void nf4_codes(const float* in, std::size_t count, std::byte* out) {
  for (; count != 0; --count, in += kNf4Block, out += kNf4Block / 2) {
    const auto largest = std::bit_cast<float>(largest_bits(in, kNf4Block));
    put_codes<kNf4Block, 4, nf4_code>(in, 1 / largest, out);
  }
}

void mxfp4_codes(const float* in, std::size_t count, std::byte* out) {
  for (; count != 0; --count, in += kMxfp4Block, out += kMxfp4Block / 2)
    put_codes<kMxfp4Block, 0, mxfp4_code>(in, mxfp4_factor(mxfp4_scale(largest_bits(in, kMxfp4Block))), out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(largest_bits);
HWY_EXPORT(multiply);
HWY_EXPORT(nf4_codes);
HWY_EXPORT(mxfp4_codes);

float largest_magnitude(std::span<const float> values) noexcept {
  return std::bit_cast<float>(HWY_DYNAMIC_DISPATCH(largest_bits)(values.data(), values.size()));
}

float fp8_factor(float largest) noexcept { return largest > 0 ? std::min(448 / largest, 0x1p126F) : 1; }

void to_fp8(std::span<const float> values, float factor, std::span<std::byte> codes) noexcept {
  while (!values.empty()) {
    std::array<float, 256> some;
    const std::size_t count = std::min(values.size(), some.size());
    HWY_DYNAMIC_DISPATCH(multiply)(values.data(), factor, count, some.data());
    cast(DType::f32, DType::f8_e4m3, std::as_bytes(std::span(some).first(count)), codes.first(count));
    values = values.subspan(count);
    codes = codes.subspan(count);
  }
}

void to_nf4(std::span<const float> values, std::span<std::byte> codes) noexcept {
  HWY_DYNAMIC_DISPATCH(nf4_codes)(values.data(), values.size() / kNf4Block, codes.data());
}

void nf4_scales(std::span<const float> values, std::span<float> scales) noexcept {
  for (std::size_t i = 0; i < scales.size(); ++i)
    scales[i] = largest_magnitude(values.subspan(i * kNf4Block, kNf4Block));
}

void to_mxfp4(std::span<const float> values, std::span<std::byte> codes) noexcept {
  HWY_DYNAMIC_DISPATCH(mxfp4_codes)(values.data(), values.size() / kMxfp4Block, codes.data());
}

void mxfp4_scales(std::span<const float> values, std::span<std::byte> scales) noexcept {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const float largest = largest_magnitude(values.subspan(i * kMxfp4Block, kMxfp4Block));
    scales[i] = static_cast<std::byte>(mxfp4_scale(std::bit_cast<std::int32_t>(largest)));
  }
}

}  // namespace ballast::kernels
#endif
