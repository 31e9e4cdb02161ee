#include "kernels/block_sums.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_sums.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

#ifndef BALLAST_SUM_LANES_DEFINED
#define BALLAST_SUM_LANES_DEFINED
namespace ballast::kernels {

// What vector code leaves behind: one number for each lane.
struct SumLanes {
  double sum[kSumLanes], squares[kSumLanes], magnitudes[kSumLanes];
  double min, max;
  std::uint64_t zeros;
};

}  // namespace ballast::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Four such vectors are at most kSumLanes doubles.
using F64 = hn::CappedTag<double, kSumLanes / 4>;
using Doubles = hn::VFromD<F64>;

HWY_INLINE Doubles load_doubles(const double* from) { return hn::LoadU(F64(), from); }
HWY_INLINE Doubles load_doubles(const float* from) {
  return hn::PromoteTo(F64(), hn::LoadU(hn::Rebind<float, F64>(), from));
}

template <class T>
HWY_INLINE void add_to(const T* from, Doubles shift, Doubles& sum, Doubles& squares, Doubles& magnitudes) {
  const Doubles value = load_doubles(from);
  const Doubles distance = hn::Sub(value, shift);
  sum = hn::Add(sum, distance);
  squares = hn::Add(squares, hn::Mul(distance, distance));
  magnitudes = hn::Add(magnitudes, hn::Abs(value));
}

// `count` is a multiple of kSumLanes.
template <class T>
void sum_lanes(const T* values, std::size_t count, SumLanes& out) {
  const F64 d;
  const std::size_t lanes = hn::Lanes(d);
  const Doubles shift = hn::Set(d, static_cast<double>(values[0]));
  for (std::size_t first = 0; first < kSumLanes; first += 4 * lanes) {
    Doubles sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    Doubles squares0 = sum0, squares1 = sum0, squares2 = sum0, squares3 = sum0;
    Doubles magnitudes0 = sum0, magnitudes1 = sum0, magnitudes2 = sum0, magnitudes3 = sum0;
    for (const T* from = values + first; from < values + count; from += kSumLanes) {
      add_to(from, shift, sum0, squares0, magnitudes0);
      add_to(from + lanes, shift, sum1, squares1, magnitudes1);
      add_to(from + 2 * lanes, shift, sum2, squares2, magnitudes2);
      add_to(from + 3 * lanes, shift, sum3, squares3, magnitudes3);
    }
    const auto store = [&](double* to, Doubles a, Doubles b, Doubles c, Doubles e) {
      hn::StoreU(a, d, to + first);
      hn::StoreU(b, d, to + first + lanes);
      hn::StoreU(c, d, to + first + 2 * lanes);
      hn::StoreU(e, d, to + first + 3 * lanes);
    };
    store(out.sum, sum0, sum1, sum2, sum3);
    store(out.squares, squares0, squares1, squares2, squares3);
    store(out.magnitudes, magnitudes0, magnitudes1, magnitudes2, magnitudes3);
  }
}

// `count` is a multiple of kSumLanes.
template <class T>
void find_extremes(const T* values, std::size_t count, SumLanes& out) {
  const hn::CappedTag<T, kSumLanes> d;
  const hn::RebindToSigned<decltype(d)> integers;
  auto min = hn::LoadU(d, values), max = min;
  auto zeros = hn::Zero(integers);  // counts downwards: a mask is -1
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, values + i);
    min = hn::Min(min, value);
    max = hn::Max(max, value);
    zeros = hn::Add(zeros, hn::BitCast(integers, hn::VecFromMask(d, hn::Eq(value, hn::Zero(d)))));
  }
  out.min = static_cast<double>(hn::GetLane(hn::MinOfLanes(d, min)));
  out.max = static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, max)));
  out.zeros = static_cast<std::uint64_t>(-static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(integers, zeros))));
}

template <class T>
void look_at(const T* values, std::size_t count, SumLanes& out) {
  sum_lanes(values, count, out);
  find_extremes(values, count, out);
}

void sum_floats(const float* values, std::size_t count, SumLanes& out) { look_at(values, count, out); }
void sum_doubles(const double* values, std::size_t count, SumLanes& out) { look_at(values, count, out); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {

HWY_EXPORT(sum_floats);
HWY_EXPORT(sum_doubles);

void sum_whole_lanes(const float* values, std::size_t count, SumLanes& out) {
  HWY_DYNAMIC_DISPATCH(sum_floats)(values, count, out);
}
void sum_whole_lanes(const double* values, std::size_t count, SumLanes& out) {
  HWY_DYNAMIC_DISPATCH(sum_doubles)(values, count, out);
}

// In an order that does not depend on the width of the vectors.
double add_up(double (&lanes)[kSumLanes]) {
  for (std::size_t width = kSumLanes / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

template <class T>
BlockSums sums_of(const T* values, std::size_t count) {
  BlockSums sums;
  const auto shift = static_cast<double>(values[0]);
  sums.min = sums.max = shift;
  const std::size_t whole = count / kSumLanes * kSumLanes;
  if (whole > 0) {
    SumLanes lanes;
    sum_whole_lanes(values, whole, lanes);
    sums = {add_up(lanes.sum), add_up(lanes.squares), add_up(lanes.magnitudes), lanes.min, lanes.max, lanes.zeros};
  }
  for (std::size_t i = whole; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    const double distance = value - shift;
    sums.sum += distance;
    sums.squares += distance * distance;
    sums.magnitudes += std::fabs(value);
    sums.min = std::min(sums.min, value);
    sums.max = std::max(sums.max, value);
    sums.zeros += value == 0 ? 1U : 0U;
  }
  // Which of the two zeros a minimum is would depend on the order of the comparisons.
  sums.min += 0.0;
  sums.max += 0.0;
  return sums;
}

}  // namespace

BlockSums block_sums(const float* values, std::size_t count) noexcept { return sums_of(values, count); }
BlockSums block_sums(const double* values, std::size_t count) noexcept { return sums_of(values, count); }

}  // namespace ballast::kernels
#endif
