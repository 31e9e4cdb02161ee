#include "kernels/bf16_distance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bf16_distance.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

#ifndef BALLAST_BF16_DISTANCE_DEFINED
#define BALLAST_BF16_DISTANCE_DEFINED
namespace ballast::kernels {

// Two neighbours share a lane of 32 bits.
constexpr std::size_t kDistanceWords = 16, kDistanceStep = 2 * kDistanceWords, kDistanceSteps = 8;

enum DistanceSum : std::size_t { kSquaresA, kSquaresB, kProducts, kSquares, kDistanceSums };

struct Bf16Distance {
  double sums[kDistanceSums][kDistanceWords] = {};
  float farthest[kDistanceWords];
  double max_rel;
};

}  // namespace ballast::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::CappedTag<std::uint32_t, kDistanceWords>;
using F32 = hn::RebindToFloat<U32>;
using HalfF64 = hn::CappedTag<double, kDistanceWords / 2>;
using Words = hn::VFromD<U32>;
using Floats = hn::VFromD<F32>;

// A BF16 is the upper half of an F32: the first of two neighbours is shifted there, the second is there already.
HWY_INLINE Floats first_of(Words pair) { return hn::BitCast(F32(), hn::ShiftLeft<16>(pair)); }
HWY_INLINE Floats second_of(Words pair) { return hn::BitCast(F32(), hn::And(pair, hn::Set(U32(), 0xFFFF'0000U))); }
HWY_INLINE Words load(const bfloat16* from) { return hn::LoadU(U32(), reinterpret_cast<const std::uint32_t*>(from)); }

HWY_INLINE void add_floats(double* to, Floats floats) {
  const HalfF64 d;
  alignas(64) float sums[hn::MaxLanes(F32())];
  hn::Store(floats, F32(), sums);
  for (std::size_t i = 0; i < hn::Lanes(F32()); i += hn::Lanes(d)) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, HalfF64>(), sums + i));
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), wide), d, to + i);
  }
}

HWY_NOINLINE double larger_ratio(double largest, Floats a, Floats b) {
  alignas(64) float of_a[hn::MaxLanes(F32())], of_b[hn::MaxLanes(F32())];
  hn::Store(a, F32(), of_a);
  hn::Store(b, F32(), of_b);
  for (std::size_t i = 0; i < hn::Lanes(F32()); ++i) {
    const auto x = static_cast<double>(of_a[i]), y = static_cast<double>(of_b[i]);
    if (x != y) largest = std::max(largest, std::fabs(x - y) / std::max(std::fabs(x), std::fabs(y)));
  }
  return largest;
}

// The sums of a few steps, as F32, and the extremes.
struct Running {
  Floats sums[kDistanceSums];
  Floats farthest, bound;

  HWY_INLINE void begin_sums() {
    for (Floats& sum : sums) sum = hn::Zero(F32());
  }
  HWY_INLINE void add(DistanceSum sum, Floats value) { sums[sum] = hn::Add(sums[sum], value); }

  // Whether the values may be relatively farther apart than all before.
  HWY_INLINE auto look_at(Floats x, Floats y) {
    const Floats change = hn::Sub(x, y);
    add(kSquaresA, hn::Mul(x, x));
    add(kSquaresB, hn::Mul(y, y));
    add(kProducts, hn::Mul(x, y));
    add(kSquares, hn::Mul(change, change));
    const Floats apart = hn::Abs(change);
    farthest = hn::Max(farthest, apart);
    return hn::Gt(apart, hn::Mul(bound, hn::Max(hn::Abs(x), hn::Abs(y))));
  }
};

// The rounding of F32 is allowed for, so that the maximum is exact: see bound_below() in distance.cpp.
HWY_INLINE Floats bound_below(double largest_ratio) {
  return hn::Set(F32(), static_cast<float>(largest_ratio * (1 - 0x1p-20)));
}

// The lanes from number `first`; `a` and `b` are the first of their words.
void measure_lanes(Bf16Distance& out, const bfloat16* a, const bfloat16* b, std::size_t first) {
  Running running;
  running.farthest = hn::Zero(F32());
  running.bound = bound_below(out.max_rel);
  for (std::size_t done = 0; done < kBf16DistanceBlock; done += kDistanceStep * kDistanceSteps) {
    running.begin_sums();
    for (std::size_t step = 0; step < kDistanceSteps; ++step, a += kDistanceStep, b += kDistanceStep) {
      fetch_further_on(a, kDistanceStep * 2);
      fetch_further_on(b, kDistanceStep * 2);
      const Words pair_a = load(a), pair_b = load(b);
      const auto first_may = running.look_at(first_of(pair_a), first_of(pair_b));
      const auto second_may = running.look_at(second_of(pair_a), second_of(pair_b));
      if (HWY_UNLIKELY(!hn::AllFalse(F32(), hn::Or(first_may, second_may)))) {
        out.max_rel = larger_ratio(out.max_rel, first_of(pair_a), first_of(pair_b));
        out.max_rel = larger_ratio(out.max_rel, second_of(pair_a), second_of(pair_b));
        running.bound = bound_below(out.max_rel);
      }
    }
    for (std::size_t i = 0; i < kDistanceSums; ++i) add_floats(out.sums[i] + first, running.sums[i]);
  }
  hn::StoreU(running.farthest, F32(), out.farthest + first);
}

void measure_on_target(Bf16Distance& out, const bfloat16* a, const bfloat16* b) {
  for (std::size_t first = 0; first < kDistanceWords; first += hn::Lanes(F32()))
    measure_lanes(out, a + 2 * first, b + 2 * first, first);
}

// The lanes from number `first`; `values` are the first of their words.
void square_lanes(double* sums, const bfloat16* values, std::size_t first) {
  for (std::size_t done = 0; done < kBf16DistanceBlock; done += kDistanceStep * kDistanceSteps) {
    Floats squares = hn::Zero(F32());
    for (std::size_t step = 0; step < kDistanceSteps; ++step, values += kDistanceStep) {
      const Floats x = first_of(load(values)), y = second_of(load(values));
      squares = hn::Add(hn::Add(squares, hn::Mul(x, x)), hn::Mul(y, y));
    }
    add_floats(sums + first, squares);
  }
}

void square_on_target(double* sums, const bfloat16* values) {
  for (std::size_t first = 0; first < kDistanceWords; first += hn::Lanes(F32()))
    square_lanes(sums, values + 2 * first, first);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {

HWY_EXPORT(measure_on_target);
HWY_EXPORT(square_on_target);

double sum_lanes(const double (&lanes)[kDistanceWords]) { return std::accumulate(lanes, lanes + kDistanceWords, 0.0); }

// Whether no square has left the range of F32, neither upwards nor, by more than what does not matter, downwards.
bool is_in_range(double squares) { return squares == 0 || (squares >= 0x1p-90 && squares <= 0x1p110); }

}  // namespace

bool measure_bf16(BlockDistance& distance, const bfloat16* a, const bfloat16* b) noexcept {
  Bf16Distance found;
  found.max_rel = distance.max_rel;
  HWY_DYNAMIC_DISPATCH(measure_on_target)(found, a, b);
  const auto total = [&](DistanceSum sum) { return sum_lanes(found.sums[sum]); };
  const PairSums sums{total(kSquaresA), total(kSquaresB), total(kProducts), total(kSquares)};
  if (!sums.is_finite()) return false;
  const double farthest = *std::max_element(found.farthest, found.farthest + kDistanceWords);
  const bool is_new = farthest * (1 + 0x1p-20) > distance.max_abs && farthest > 0;
  if (is_new || !is_in_range(sums.squares_a) || !is_in_range(sums.squares_b) || !is_in_range(sums.squares))
    return false;
  distance.sums = sums;
  distance.max_rel = found.max_rel;
  return true;
}

bool square_bf16(double& squares, const bfloat16* values) noexcept {
  double sums[kDistanceWords] = {};
  HWY_DYNAMIC_DISPATCH(square_on_target)(sums, values);
  squares = sum_lanes(sums);
  return std::isfinite(squares) && is_in_range(squares);
}

}  // namespace ballast::kernels
#endif
