#include "kernels/bf16_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "kernels/stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bf16_sums.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

#ifndef BALLAST_BF16_LANES_DEFINED
#define BALLAST_BF16_LANES_DEFINED
namespace ballast::kernels {

// Two neighbours share a lane of 32 bits.
constexpr std::size_t kBf16Lanes = 8, kBf16Step = 2 * kBf16Lanes, kBf16Steps = 16;

struct Bf16Lanes {
  double sum[kBf16Lanes] = {}, squares[kBf16Lanes] = {}, magnitudes[kBf16Lanes] = {};
  float min[kBf16Lanes], max[kBf16Lanes];
  std::uint64_t zeros = 0;
};

}  // namespace ballast::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::CappedTag<std::uint32_t, kBf16Lanes>;
using F32 = hn::RebindToFloat<U32>;
using I32 = hn::RebindToSigned<U32>;
using HalfF64 = hn::CappedTag<double, kBf16Lanes / 2>;
using Words = hn::VFromD<U32>;
using Floats = hn::VFromD<F32>;
using Counts = hn::VFromD<I32>;

struct Extremes {
  Floats min, max;
  Counts zeros;  // counts downwards: a mask is -1
};

// A BF16 is the upper half of an F32: the first of two neighbours is shifted there, the second is there already.
HWY_INLINE Floats first_of(Words pair) { return hn::BitCast(F32(), hn::ShiftLeft<16>(pair)); }
HWY_INLINE Floats second_of(Words pair) { return hn::BitCast(F32(), hn::And(pair, hn::Set(U32(), 0xFFFF'0000U))); }

HWY_INLINE void look_at(Floats value, Extremes& extremes) {
  extremes.min = hn::Min(extremes.min, value);
  extremes.max = hn::Max(extremes.max, value);
  const auto is_zero = hn::VecFromMask(F32(), hn::Eq(value, hn::Zero(F32())));
  extremes.zeros = hn::Add(extremes.zeros, hn::BitCast(I32(), is_zero));
}

HWY_INLINE void add_floats(double* to, Floats a, Floats b) {
  const HalfF64 d;
  alignas(64) float sums[kBf16Lanes];
  hn::Store(hn::Add(a, b), F32(), sums);
  for (std::size_t i = 0; i < hn::Lanes(F32()); i += hn::Lanes(d)) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, HalfF64>(), sums + i));
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), wide), d, to + i);
  }
}

#if HWY_CAP_GE512

// Two neighbours are two lanes here: the even lanes are what the first ones are elsewhere, the odd lanes the second
// ones. So the same values are added in the same order, and every bit is the same.
using WideU32 = hn::CappedTag<std::uint32_t, 2 * kBf16Lanes>;
using WideF32 = hn::RebindToFloat<WideU32>;
using WideFloats = hn::VFromD<WideF32>;

HWY_INLINE WideFloats load_wide(const std::byte* at) {
  const auto codes = hn::LoadU(hn::Rebind<std::uint16_t, WideU32>(), reinterpret_cast<const std::uint16_t*>(at));
  return hn::BitCast(WideF32(), hn::ShiftLeft<16>(hn::PromoteTo(WideU32(), codes)));
}

HWY_INLINE Floats even(WideFloats wide) { return hn::LowerHalf(F32(), hn::ConcatEven(WideF32(), wide, wide)); }
HWY_INLINE Floats odd(WideFloats wide) { return hn::LowerHalf(F32(), hn::ConcatOdd(WideF32(), wide, wide)); }

void sum_bf16(const std::byte* from, Bf16Lanes& out) {
  const WideF32 d;
  WideFloats min = load_wide(from), max = min;
  for (std::size_t done = 0; done < kBf16Block; done += kBf16Step * kBf16Steps) {
    WideFloats sum = hn::Zero(d), squares = sum, magnitudes = sum;
    for (std::size_t step = 0; step < kBf16Steps; ++step, from += kBf16Step * 2) {
      fetch_further_on(from, kBf16Step * 2);
      const WideFloats value = load_wide(from);
      sum = hn::Add(sum, value);
      squares = hn::Add(squares, hn::Mul(value, value));
      magnitudes = hn::Add(magnitudes, hn::Abs(value));
      min = hn::Min(min, value);
      max = hn::Max(max, value);
      out.zeros += hn::CountTrue(d, hn::Eq(value, hn::Zero(d)));
    }
    add_floats(out.sum, even(sum), odd(sum));
    add_floats(out.squares, even(squares), odd(squares));
    add_floats(out.magnitudes, even(magnitudes), odd(magnitudes));
  }
  hn::StoreU(hn::Min(even(min), odd(min)), F32(), out.min);
  hn::StoreU(hn::Max(even(max), odd(max)), F32(), out.max);
}

#else

// The lanes from number `first`; `from` is the first of their words.
void sum_bf16_lanes(const std::byte* from, std::size_t first, Bf16Lanes& out) {
  const F32 d;
  const auto load = [](const std::byte* at) { return hn::LoadU(U32(), reinterpret_cast<const std::uint32_t*>(at)); };
  Extremes extremes{first_of(load(from)), first_of(load(from)), hn::Zero(I32())};
  for (std::size_t done = 0; done < kBf16Block; done += kBf16Step * kBf16Steps) {
    Floats sum0 = hn::Zero(d), sum1 = sum0, squares0 = sum0, squares1 = sum0, magnitudes0 = sum0, magnitudes1 = sum0;
    for (std::size_t step = 0; step < kBf16Steps; ++step, from += kBf16Step * 2) {
      fetch_further_on(from, kBf16Step * 2);
      const Words pair = load(from);
      const Floats a = first_of(pair), b = second_of(pair);
      sum0 = hn::Add(sum0, a);
      sum1 = hn::Add(sum1, b);
      squares0 = hn::Add(squares0, hn::Mul(a, a));
      squares1 = hn::Add(squares1, hn::Mul(b, b));
      magnitudes0 = hn::Add(magnitudes0, hn::Abs(a));
      magnitudes1 = hn::Add(magnitudes1, hn::Abs(b));
      look_at(a, extremes);
      look_at(b, extremes);
    }
    add_floats(out.sum + first, sum0, sum1);
    add_floats(out.squares + first, squares0, squares1);
    add_floats(out.magnitudes + first, magnitudes0, magnitudes1);
  }
  hn::StoreU(extremes.min, d, out.min + first);
  hn::StoreU(extremes.max, d, out.max + first);
  out.zeros -= static_cast<std::uint64_t>(std::int64_t{hn::GetLane(hn::SumOfLanes(I32(), extremes.zeros))});
}

void sum_bf16(const std::byte* codes, Bf16Lanes& out) {
  for (std::size_t first = 0; first < kBf16Lanes; first += hn::Lanes(F32()))
    sum_bf16_lanes(codes + first * 4, first, out);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {

HWY_EXPORT(sum_bf16);

double sum_of_lanes(const double (&lanes)[kBf16Lanes]) { return std::accumulate(lanes, lanes + kBf16Lanes, 0.0); }

}  // namespace

std::optional<BlockSums> bf16_sums(const std::byte* codes) noexcept {
  Bf16Lanes lanes;
  HWY_DYNAMIC_DISPATCH(sum_bf16)(codes, lanes);
  BlockSums sums{sum_of_lanes(lanes.sum), sum_of_lanes(lanes.squares), sum_of_lanes(lanes.magnitudes)};
  // Which of the two zeros a minimum is would depend on the order of the comparisons.
  sums.min = static_cast<double>(*std::min_element(lanes.min, lanes.min + kBf16Lanes)) + 0.0;
  sums.max = static_cast<double>(*std::max_element(lanes.max, lanes.max + kBf16Lanes)) + 0.0;
  sums.zeros = lanes.zeros;

  constexpr double kLargest = 0x1p60, kSmallest = 0x1p-50, kFarMean = 0.75;
  const double largest = std::max(std::fabs(sums.min), std::fabs(sums.max));
  const bool is_finite = std::isfinite(sums.magnitudes);  // NaN and Inf show in every sum
  const bool is_in_range = largest == 0 || (largest >= kSmallest && largest <= kLargest);
  const bool is_far = sums.sum * (sums.sum / kBf16Block) > kFarMean * sums.squares;
  if (!is_finite || !is_in_range || is_far) return std::nullopt;
  return sums;
}

}  // namespace ballast::kernels
#endif
