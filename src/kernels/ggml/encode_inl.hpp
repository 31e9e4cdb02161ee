// The code that the families of encode_simd.hpp share, for one instruction set. It is included once for each
// instruction set, inside the code that <hwy/foreach_target.h> repeats, so it has no #pragma once.
//
// Every operation of the plain code rounds, so all of them are here, in the same order. A result that does not depend
// on the order (the largest of many, codes for a scale that is known) is computed along a block. A sum depends on the
// order: so that its terms are still added one after the other, each lane has a group of elements to itself, and a
// vector holds the same element of many groups.
#if defined(BALLAST_GGML_ENCODE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BALLAST_GGML_ENCODE_INL
#undef BALLAST_GGML_ENCODE_INL
#else
#define BALLAST_GGML_ENCODE_INL
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/ggml/encode_plain.hpp"
#include "kernels/ggml/encode_simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// At most 8 lanes, because there are 8 groups in a block.
using F32 = hn::CappedTag<float, 8>;
using I32 = hn::Rebind<std::int32_t, F32>;
using Floats = hn::VFromD<F32>;
using Ints = hn::VFromD<I32>;
using Mask = decltype(hn::Lt(Floats(), Floats()));
inline constexpr std::size_t kLanes = hn::MaxLanes(F32());

HWY_INLINE Floats all(float value) { return hn::Set(F32(), value); }
HWY_INLINE Floats load(const float* from) { return hn::LoadU(F32(), from); }

// The vector code of plain::nearest.
HWY_INLINE Ints nearest(Floats value) {
  const I32 d;
  const auto bits = hn::BitCast(d, hn::Add(value, all(plain::kRoundingBias)));
  return hn::Sub(hn::And(bits, hn::Set(d, 0x007F'FFFF)), hn::Set(d, 0x0040'0000));
}

template <int kLow, int kHigh>
HWY_INLINE Ints nearest_within(Floats value) {
  const I32 d;
  return hn::Min(hn::Max(nearest(value), hn::Set(d, kLow)), hn::Set(d, kHigh));
}

// Rounds halves away from zero, for values far below 2^23. It adds just less than a half: for a half itself, and for
// every number that ends in a half, the sum is rounded up.
HWY_INLINE Ints rounded(Floats value) {
  return hn::ConvertTo(I32(), hn::Add(value, hn::CopySignToAbs(all(0x1.FFFFFEp-2F), value)));
}

// Cuts and does not round; NaN becomes zero.
HWY_INLINE Ints cut(Floats value, float most) {
  return hn::ConvertTo(I32(), hn::Min(hn::Max(value, hn::Zero(F32())), all(most)));
}

HWY_INLINE void store_codes(Ints codes, std::uint8_t* out) {
  const hn::Rebind<std::uint8_t, F32> d;
  hn::StoreU(hn::DemoteTo(d, codes), d, out);
}

// Writes one code for each element; `encode` makes a vector of codes at a time.
template <class Encode>
HWY_INLINE void each_code(const float* x, std::size_t count, std::uint8_t* codes, Encode encode) {
  for (std::size_t i = 0; i < count; i += kLanes) store_codes(encode(load(x + i)), codes + i);
}

// 2 * kHalf codes of 4 bits; the first half goes into the low nibbles.
template <std::size_t kHalf, class Encode>
HWY_INLINE void put_nibbles(const float* x, std::uint8_t* out, Encode encode) {
  for (std::size_t i = 0; i < kHalf; i += kLanes) {
    const Ints low = encode(load(x + i)), high = encode(load(x + kHalf + i));
    store_codes(hn::Or(low, hn::ShiftLeft<4>(high)), out + i);
  }
}

// A bit for each lane; the first lane is the lowest bit.
HWY_INLINE std::uint32_t bits_from(Mask mask) {
  std::uint8_t bits[8] = {};
  hn::StoreMaskBits(F32(), mask, bits);
  return bits[0];
}

HWY_INLINE void put_f16(float value, std::uint8_t* out) {
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
  const hn::FixedTag<float, 4> d;
  const auto code = hn::DemoteTo(hn::FixedTag<hwy::float16_t, 4>(), hn::Set(d, value));
  plain::put_u16(hn::GetLane(hn::BitCast(hn::FixedTag<std::uint16_t, 4>(), code)), out);
#else
  plain::put_f16(value, out);
#endif
}

template <std::size_t kCount>
HWY_INLINE float largest_magnitude(const float* x) {
  Floats most = hn::Abs(load(x));
  for (std::size_t i = kLanes; i < kCount; i += kLanes) most = hn::Max(most, hn::Abs(load(x + i)));
  return hn::GetLane(hn::MaxOfLanes(F32(), most));
}

struct Extremes {
  float min, max;
};
template <std::size_t kCount>
HWY_INLINE Extremes extremes(const float* x) {
  Floats min = load(x), max = min;
  for (std::size_t i = kLanes; i < kCount; i += kLanes) {
    min = hn::Min(min, load(x + i));
    max = hn::Max(max, load(x + i));
  }
  return {hn::GetLane(hn::MinOfLanes(F32(), min)), hn::GetLane(hn::MaxOfLanes(F32(), max))};
}

// The order matters only if both signs are equally far (or if there is nothing but zeros).
template <std::size_t kCount>
HWY_INLINE float farthest_from_zero(const float* x) {
  const auto [min, max] = extremes<kCount>(x);
  if (HWY_UNLIKELY(max == -min)) return plain::farthest_from_zero(x, static_cast<int>(kCount));
  return max > -min ? max : min;
}

// Four elements of kLanes groups, which begin kApart elements apart: each 128 bits of a vector come from one group.
template <std::size_t kApart, class D>
HWY_INLINE hn::VFromD<D> load_fours(D d, const float* x) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    constexpr std::size_t kHalf = hn::MaxLanes(D()) / 2;
    return hn::Combine(d, load_fours<kApart>(half, x + kHalf * kApart), load_fours<kApart>(half, x));
  } else {
    return hn::LoadU(d, x);
  }
}

// Calls use(i, vector of element i of kLanes groups) for each of the kGroup elements, in their order.
template <std::size_t kGroup, std::size_t kApart = kGroup, class Use>
HWY_INLINE void across_groups(const float* x, Use use) {
  const F32 d;
  const hn::Repartition<std::uint64_t, F32> d64;
  for (std::size_t i = 0; i < kGroup; i += 4, x += 4) {
    const auto a = load_fours<kApart>(d, x), b = load_fours<kApart>(d, x + kApart);
    const auto c = load_fours<kApart>(d, x + 2 * kApart), e = load_fours<kApart>(d, x + 3 * kApart);
    const auto first_ab = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
    const auto first_ce = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
    use(i, hn::BitCast(d, hn::InterleaveLower(d64, first_ab, first_ce)));
    use(i + 1, hn::BitCast(d, hn::InterleaveUpper(d64, first_ab, first_ce)));
    const auto last_ab = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
    const auto last_ce = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
    use(i + 2, hn::BitCast(d, hn::InterleaveLower(d64, last_ab, last_ce)));
    use(i + 3, hn::BitCast(d, hn::InterleaveUpper(d64, last_ab, last_ce)));
  }
}

// The same element of many groups in a vector.
template <std::size_t kGroup>
class Across {
 public:
  template <std::size_t kApart = kGroup>
  void fill(const float* x) {
    across_groups<kGroup, kApart>(x, [this](std::size_t i, Floats element) { set(i, element); });
  }
  HWY_INLINE Floats operator[](std::size_t i) const { return hn::Load(F32(), lanes_ + i * kLanes); }
  HWY_INLINE void set(std::size_t i, Floats value) { hn::Store(value, F32(), lanes_ + i * kLanes); }

 private:
  alignas(64) float lanes_[kGroup * kLanes];
};

// The codes of one group for a scale that is known. Every Search of encode_frame.hpp has these functions.
struct GroupCodes {
  template <int kLow, int kHigh>
  static void divided(const float* x, int count, float add, float d, std::uint8_t* codes) {
    each_code(x, static_cast<std::size_t>(count), codes, [&](Floats values) {
      const Floats scaled = hn::Div(hn::Add(values, all(add)), all(d));
      return hn::Sub(nearest_within<kLow, kHigh>(scaled), hn::Set(I32(), kLow));
    });
  }

  template <int kLow, int kHigh>
  static void multiplied(const float* x, int count, float base, float iscale, std::uint8_t* codes) {
    each_code(x, static_cast<std::size_t>(count), codes, [&](Floats values) {
      const Floats scaled = hn::Mul(all(iscale), hn::Sub(values, all(base)));
      return hn::Sub(nearest_within<kLow, kHigh>(scaled), hn::Set(I32(), kLow));
    });
  }
};

template <plain::EncodeBlock kEncode>
void encode_each(DType type, const float* in, std::size_t count, std::uint8_t* out) {
  const std::size_t elements = info(type).block_elements, bytes = info(type).block_bytes;
  for (; count > 0; --count, in += elements, out += bytes) kEncode(in, out);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#endif
