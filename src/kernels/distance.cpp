#include "kernels/distance.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distance.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::CappedTag<double, kDistanceLanes>;
using Doubles = hn::VFromD<F64>;
constexpr std::size_t kWidth = hn::MaxLanes(F64());
constexpr std::size_t kVectors = kDistanceLanes / kWidth;

// LoadU takes any address, even if the pointer's type promises alignment.
HWY_INLINE Doubles load(const double* from) { return hn::LoadU(F64(), from); }
HWY_INLINE Doubles load(const float* from) { return hn::PromoteTo(F64(), hn::LoadU(hn::Rebind<float, F64>(), from)); }

HWY_INLINE Doubles load(const bfloat16* from) {
  const hn::Rebind<std::uint32_t, F64> words;
  const auto codes = hn::LoadU(hn::Rebind<std::uint16_t, F64>(), reinterpret_cast<const std::uint16_t*>(from));
  const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(words, codes));
  return hn::PromoteTo(F64(), hn::BitCast(hn::Rebind<float, F64>(), bits));
}

// Eight sums, which are added up in the same order on every machine.
struct Sums {
  Doubles of[kVectors];

  HWY_INLINE Sums() {
    for (Doubles& sum : of) sum = hn::Zero(F64());
  }
  HWY_INLINE void add(std::size_t i, Doubles value) { of[i] = hn::Add(of[i], value); }
  double total() const {
    alignas(64) double lanes[kDistanceLanes];
    for (std::size_t i = 0; i < kVectors; ++i) hn::Store(of[i], F64(), lanes + i * kWidth);
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
};

double largest(const Doubles (&values)[kVectors]) {
  alignas(64) double lanes[kDistanceLanes];
  for (std::size_t i = 0; i < kVectors; ++i) hn::Store(values[i], F64(), lanes + i * kWidth);
  return *std::max_element(lanes, lanes + kDistanceLanes);
}

// A division for every pair would take as long as everything else. A product with this bound tells which pairs may be
// relatively farther apart than all before; its rounding is allowed for, so that the maximum is exact.
HWY_INLINE Doubles bound_below(double largest_ratio) { return hn::Set(F64(), largest_ratio * (1 - 1e-15)); }

HWY_NOINLINE double larger_ratio(double largest, Doubles distance, Doubles magnitude) {
  alignas(64) double distances[kWidth], magnitudes[kWidth];
  hn::Store(distance, F64(), distances);
  hn::Store(magnitude, F64(), magnitudes);
  for (std::size_t i = 0; i < kWidth; ++i) {
    if (distances[i] > 0) largest = std::max(largest, distances[i] / magnitudes[i]);
  }
  return largest;
}

template <bool kIsExact, class Number>
void measure_block(BlockDistance& distance, const Number* a, const Number* b, std::size_t count,
                   const Closeness& close) {
  Sums squares_a, squares_b, products, squares;
  Doubles farthest[kVectors];
  for (Doubles& far : farthest) far = hn::Zero(F64());
  const Doubles atol = hn::Set(F64(), close.atol), rtol = hn::Set(F64(), close.rtol);
  double max_rel = distance.max_rel;
  Doubles bound = bound_below(max_rel);
  std::uint64_t beyond = 0;
  for (std::size_t at = 0; at < count; at += kDistanceLanes) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      const Doubles x = load(a + at + i * kWidth), y = load(b + at + i * kWidth);
      const Doubles change = hn::Sub(x, y);
      squares_a.add(i, hn::Mul(x, x));
      squares_b.add(i, hn::Mul(y, y));
      products.add(i, hn::Mul(x, y));
      squares.add(i, hn::Mul(change, change));
      Doubles apart = hn::Abs(change);
      if constexpr (!kIsExact) {
        const auto is_beyond = hn::Gt(apart, hn::Add(atol, hn::Mul(rtol, hn::Abs(y))));
        beyond += hn::CountTrue(F64(), is_beyond);
        apart = hn::IfThenElseZero(is_beyond, apart);
      }
      farthest[i] = hn::Max(farthest[i], apart);
      const Doubles magnitude = hn::Max(hn::Abs(x), hn::Abs(y));
      if (HWY_UNLIKELY(!hn::AllFalse(F64(), hn::Gt(apart, hn::Mul(bound, magnitude))))) {
        max_rel = larger_ratio(max_rel, apart, magnitude);
        bound = bound_below(max_rel);
      }
    }
  }
  distance.sums = {squares_a.total(), squares_b.total(), products.total(), squares.total()};
  distance.beyond = beyond;
  distance.max_abs = largest(farthest);
  distance.max_rel = max_rel;
}

template <class Number>
void measure_numbers(BlockDistance& distance, const Number* a, const Number* b, std::size_t count,
                     const Closeness& close) {
  if (close.is_exact()) return measure_block<true>(distance, a, b, count, close);
  measure_block<false>(distance, a, b, count, close);
}

template <class Number>
double sum_numbers(const Number* values, std::size_t count) {
  Sums squares;
  for (std::size_t at = 0; at < count; at += kDistanceLanes) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      const Doubles x = load(values + at + i * kWidth);
      squares.add(i, hn::Mul(x, x));
    }
  }
  return squares.total();
}

void measure_halves(BlockDistance& distance, const bfloat16* a, const bfloat16* b, std::size_t count,
                    const Closeness& close) {
  measure_numbers(distance, a, b, count, close);
}
void measure_floats(BlockDistance& distance, const float* a, const float* b, std::size_t count,
                    const Closeness& close) {
  measure_numbers(distance, a, b, count, close);
}
void measure_doubles(BlockDistance& distance, const double* a, const double* b, std::size_t count,
                     const Closeness& close) {
  measure_numbers(distance, a, b, count, close);
}
template <class Element>
std::uint64_t count_elements(const std::byte* a, const std::byte* b, std::size_t count) {
  const hn::ScalableTag<Element> d;
  const std::size_t width = hn::Lanes(d);
  const auto load_elements = [d](const std::byte* from) {
    return hn::LoadU(d, reinterpret_cast<const Element*>(from));
  };
  std::uint64_t equal = 0;
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    const std::size_t at = i * sizeof(Element);
    equal += hn::CountTrue(d, hn::Eq(load_elements(a + at), load_elements(b + at)));
  }
  for (; i < count; ++i) {
    const std::size_t at = i * sizeof(Element);
    equal += std::memcmp(a + at, b + at, sizeof(Element)) == 0 ? 1U : 0U;
  }
  return count - equal;
}

std::uint64_t count_on_target(const std::byte* a, const std::byte* b, std::size_t count, std::size_t size) {
  switch (size) {
    case 1: return count_elements<std::uint8_t>(a, b, count);
    case 2: return count_elements<std::uint16_t>(a, b, count);
    case 4: return count_elements<std::uint32_t>(a, b, count);
    default: return count_elements<std::uint64_t>(a, b, count);
  }
}

double sum_halves(const bfloat16* values, std::size_t count) { return sum_numbers(values, count); }
double sum_floats(const float* values, std::size_t count) { return sum_numbers(values, count); }
double sum_doubles(const double* values, std::size_t count) { return sum_numbers(values, count); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(measure_halves);
HWY_EXPORT(measure_floats);
HWY_EXPORT(measure_doubles);
HWY_EXPORT(count_on_target);
HWY_EXPORT(sum_halves);
HWY_EXPORT(sum_floats);
HWY_EXPORT(sum_doubles);

void measure(BlockDistance& distance, const bfloat16* a, const bfloat16* b, std::size_t count,
             const Closeness& close) noexcept {
  HWY_DYNAMIC_DISPATCH(measure_halves)(distance, a, b, count, close);
}

void measure(BlockDistance& distance, const float* a, const float* b, std::size_t count,
             const Closeness& close) noexcept {
  HWY_DYNAMIC_DISPATCH(measure_floats)(distance, a, b, count, close);
}

void measure(BlockDistance& distance, const double* a, const double* b, std::size_t count,
             const Closeness& close) noexcept {
  HWY_DYNAMIC_DISPATCH(measure_doubles)(distance, a, b, count, close);
}

std::uint64_t count_unequal(const std::byte* a, const std::byte* b, std::size_t count, std::size_t size) noexcept {
  return HWY_DYNAMIC_DISPATCH(count_on_target)(a, b, count, size);
}

double sum_of_squares(const bfloat16* values, std::size_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(sum_halves)(values, count);
}

double sum_of_squares(const float* values, std::size_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(sum_floats)(values, count);
}

double sum_of_squares(const double* values, std::size_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(sum_doubles)(values, count);
}

}  // namespace ballast::kernels
#endif
