#include "kernels/cast_simd.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cast_simd.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// After it, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Highway's own conversion to and from F16 is right where the processor has one; elsewhere it truncates and knows
// neither Inf nor NaN. (x86 targets with larger numbers are older.)
#undef BALLAST_NATIVE_F16
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
#define BALLAST_NATIVE_F16 1
#else
#define BALLAST_NATIVE_F16 0
#endif

// All work is done on vectors of 32-bit lanes; bits are signed, because no magnitude reaches the sign bit.
using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using U8 = hn::Rebind<std::uint8_t, F32>;
using Floats = hn::VFromD<F32>;
using Bits = hn::VFromD<I32>;
using Shorts = hn::VFromD<U16>;
#if HWY_TARGET != HWY_SCALAR
using WholeU16 = hn::Repartition<std::uint16_t, F32>;
#endif

constexpr std::int32_t kF32Infinity = 0x7F800000;

// LoadU and StoreU take any address, whatever its type promises.
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const std::byte* from) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
}

template <bool kStream, class D>
HWY_INLINE void store(hn::VFromD<D> value, D d, std::byte* to) {
  if constexpr (kStream) {
    hn::Stream(value, d, reinterpret_cast<hn::TFromD<D>*>(to));
  } else {
    hn::StoreU(value, d, reinterpret_cast<hn::TFromD<D>*>(to));
  }
}

// A floating type of 8 or 16 bits, in the order sign, exponent, mantissa.
template <int kTotalBits, int kMantissaBits, int kExponentBias>
struct Layout {
  static constexpr int kBits = kTotalBits, kMantissa = kMantissaBits, kBias = kExponentBias;
  static constexpr int kInfinity = ((1 << (kTotalBits - 1)) - 1) & ~((1 << kMantissaBits) - 1);
};
struct F16Layout : Layout<16, 10, 15> {
  static constexpr int kLargest = kInfinity - 1, kOverflow = kInfinity;
  static constexpr bool kNanHasPayload = true, kSignedZero = true;
};
struct E5m2Layout : Layout<8, 2, 15> {
  static constexpr int kLargest = kInfinity - 1, kOverflow = kInfinity;
  static constexpr bool kNanHasPayload = true, kSignedZero = true;
};
struct E4m3Layout : Layout<8, 3, 7> {
  static constexpr int kLargest = 0x7E, kOverflow = 0x7F;  // no Inf; all ones is NaN
  static constexpr bool kNanHasPayload = false, kSignedZero = true;
};
struct E4m3FnuzLayout : Layout<8, 3, 8> {
  static constexpr int kLargest = 0x7F, kOverflow = 0x80;  // no Inf; what would be -0 is NaN
  static constexpr bool kNanHasPayload = false, kSignedZero = false;
};
struct E5m2FnuzLayout : Layout<8, 2, 16> {
  static constexpr int kLargest = 0x7F, kOverflow = 0x80;
  static constexpr bool kNanHasPayload = false, kSignedZero = false;
};

// The code of |x| where it is subnormal in L. Adding the power of two whose last place is L's smallest step makes
// the adder round to that step.
template <class L>
HWY_INLINE Bits subnormal_code(Bits magnitude) {
  constexpr std::int32_t kMagic = (127 + 1 - L::kBias - L::kMantissa + 23) << 23;
  const Floats magic = hn::BitCast(F32(), hn::Set(I32(), kMagic));
  const Floats sum = hn::Add(hn::BitCast(F32(), magnitude), magic);
  return hn::Sub(hn::BitCast(I32(), sum), hn::Set(I32(), kMagic));
}

template <class L>
HWY_INLINE Bits encode(Floats value) {
  const I32 d;
  constexpr int kShift = 23 - L::kMantissa;
  const Bits bits = hn::BitCast(d, value);
  const Bits magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFF));

  // Half a step less one, plus the last bit that stays: a carry goes up exactly when nearest-even does.
  const Bits last = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d, 1));
  const Bits rounded = hn::Add(hn::Add(magnitude, last), hn::Set(d, (1 << (kShift - 1)) - 1));
  Bits code = hn::Sub(hn::ShiftRight<kShift>(rounded), hn::Set(d, (127 - L::kBias) << L::kMantissa));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(d, (127 - L::kBias + 1) << 23));
  code = hn::IfThenElse(is_subnormal, subnormal_code<L>(magnitude), code);
  code = hn::IfThenElse(hn::Gt(code, hn::Set(d, L::kLargest)), hn::Set(d, L::kOverflow), code);

  Bits nan = hn::Set(d, L::kOverflow);
  if constexpr (L::kNanHasPayload) {
    constexpr int kQuiet = 1 << (L::kMantissa - 1);
    const Bits payload = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d, (1 << L::kMantissa) - 1));
    nan = hn::Or(payload, hn::Set(d, L::kInfinity | kQuiet));
  }
  code = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kF32Infinity)), nan, code);

  Bits sign = hn::And(hn::ShiftRight<32 - L::kBits>(bits), hn::Set(d, 1 << (L::kBits - 1)));
  if constexpr (!L::kSignedZero) sign = hn::IfThenZeroElse(hn::Eq(code, hn::Zero(d)), sign);
  return hn::Or(code, sign);
}

// Two vectors of floats become one whole vector of 16-bit values, which is what can be streamed.
struct ToF16 {
  template <bool kStream>
  static HWY_INLINE void put(Floats low, Floats high, std::byte* out) {
#if HWY_TARGET == HWY_SCALAR
    store<false>(hn::DemoteTo(U16(), encode<F16Layout>(low)), U16(), out);
    store<false>(hn::DemoteTo(U16(), encode<F16Layout>(high)), U16(), out + 2);
#elif BALLAST_NATIVE_F16
    const hn::Rebind<hwy::float16_t, F32> f16;
    const auto low_codes = hn::BitCast(U16(), hn::DemoteTo(f16, low));
    const auto high_codes = hn::BitCast(U16(), hn::DemoteTo(f16, high));
    store<kStream>(hn::Combine(WholeU16(), high_codes, low_codes), WholeU16(), out);
#else
    const auto low_codes = hn::BitCast(WholeU16(), encode<F16Layout>(low));
    const auto high_codes = hn::BitCast(WholeU16(), encode<F16Layout>(high));
    store<kStream>(hn::ConcatEven(WholeU16(), high_codes, low_codes), WholeU16(), out);
#endif
  }
};

// BF16 is the upper half of an F32, so rounding is all there is to do: subnormals are no special case, and what
// follows the largest number is Inf.
HWY_INLINE Bits round_to_upper_half(Floats value) {
  const I32 d;
  const Bits bits = hn::BitCast(d, value);
  const Bits last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const Bits rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), last);
  const Bits quiet = hn::Or(bits, hn::Set(d, 0x00400000));
  // Asked of the bits: clang 14 would ask a float that came from F16 before widening it, one lane after the other.
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7FFFFFFF)), hn::Set(d, kF32Infinity));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

struct ToBf16 {
  template <bool kStream>
  static HWY_INLINE void put(Floats low, Floats high, std::byte* out) {
    const Bits low_bits = round_to_upper_half(low), high_bits = round_to_upper_half(high);
#if HWY_TARGET == HWY_SCALAR
    const auto code = [](Bits bits) { return hn::And(hn::ShiftRight<16>(bits), hn::Set(I32(), 0xFFFF)); };
    store<false>(hn::DemoteTo(U16(), code(low_bits)), U16(), out);
    store<false>(hn::DemoteTo(U16(), code(high_bits)), U16(), out + 2);
#else
    const WholeU16 d;
    store<kStream>(hn::ConcatOdd(d, hn::BitCast(d, high_bits), hn::BitCast(d, low_bits)), d, out);
#endif
  }
};

HWY_INLINE Floats decode_bf16(Shorts code) { return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(I32(), code))); }

HWY_INLINE Floats decode_f16(Shorts code) {
#if BALLAST_NATIVE_F16
  return hn::PromoteTo(F32(), hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), code));
#else
  const I32 d;
  const Bits wide = hn::PromoteTo(d, code);
  const Bits magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(d, 0x7FFF)));
  const Bits sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(d, 0x8000)));

  // The bias grows by 112; an exponent of all ones stays all ones, which takes 112 more.
  constexpr std::int32_t kRebias = 112 << 23, kInfinity = 0x7C00 << 13, kSmallestNormal = 0x0400 << 13;
  Bits normal = hn::Add(magnitude, hn::Set(d, kRebias));
  normal = hn::Add(normal, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(d, kInfinity - 1)), hn::Set(d, kRebias)));
  normal = hn::Or(normal, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(d, kInfinity)), hn::Set(d, 0x00400000)));

  // A subnormal is its mantissa under the smallest normal exponent, less that exponent's implied one.
  const Bits one = hn::Set(d, kRebias + (1 << 23));
  const Floats shifted = hn::BitCast(F32(), hn::Add(magnitude, one));
  const Bits subnormal = hn::BitCast(d, hn::Sub(shifted, hn::BitCast(F32(), one)));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(d, kSmallestNormal));
  return hn::BitCast(F32(), hn::Or(sign, hn::IfThenElse(is_subnormal, subnormal, normal)));
#endif
}

// An operation is a step that casts two vectors of floats' worth of elements, and the sizes of its elements.
template <class To>
struct FromF32To16 {
  static constexpr std::size_t kIn = 4, kOut = 2;
  template <bool kStream>
  static HWY_INLINE void step(const std::byte* in, std::byte* out) {
    To::template put<kStream>(load(F32(), in), load(F32(), in + 4 * hn::Lanes(F32())), out);
  }
};

template <class L>
struct FromF32To8 {
  static constexpr std::size_t kIn = 4, kOut = 1;
  template <bool>
  static HWY_INLINE void step(const std::byte* in, std::byte* out) {
    const std::size_t lanes = hn::Lanes(F32());
    store<false>(hn::DemoteTo(U8(), encode<L>(load(F32(), in))), U8(), out);
    store<false>(hn::DemoteTo(U8(), encode<L>(load(F32(), in + 4 * lanes))), U8(), out + lanes);
  }
};

template <Floats (*kDecode)(Shorts)>
struct From16ToF32 {
  static constexpr std::size_t kIn = 2, kOut = 4;
  template <bool kStream>
  static HWY_INLINE void step(const std::byte* in, std::byte* out) {
    const std::size_t lanes = hn::Lanes(F32());
    store<kStream>(kDecode(load(U16(), in)), F32(), out);
    store<kStream>(kDecode(load(U16(), in + 2 * lanes)), F32(), out + 4 * lanes);
  }
};

template <Floats (*kDecode)(Shorts), class To>
struct From16To16 {
  static constexpr std::size_t kIn = 2, kOut = 2;
  template <bool kStream>
  static HWY_INLINE void step(const std::byte* in, std::byte* out) {
    To::template put<kStream>(kDecode(load(U16(), in)), kDecode(load(U16(), in + 2 * hn::Lanes(F32()))), out);
  }
};

// For the ends: one copy of the code is enough.
template <class Op>
HWY_NOINLINE void step_once(const std::byte* in, std::byte* out) {
  Op::template step<false>(in, out);
}

// Fewer elements than one step has: through buffers on the stack.
template <class Op>
void cast_few(const std::byte* in, std::byte* out, std::size_t count) {
  constexpr std::size_t kMost = 2 * hn::MaxLanes(F32());
  alignas(64) std::byte padded_in[kMost * Op::kIn] = {};
  alignas(64) std::byte padded_out[kMost * Op::kOut];
  std::memcpy(padded_in, in, count * Op::kIn);
  step_once<Op>(padded_in, padded_out);
  std::memcpy(out, padded_out, count * Op::kOut);
}

// How many elements of `size` bytes lie before the first place where a vector may be streamed; all of them where there
// is no such place.
std::size_t elements_before_alignment(const std::byte* out, std::size_t size, std::size_t count) {
  const std::size_t vector_bytes = hn::Lanes(hn::ScalableTag<std::uint8_t>());
  const std::size_t bytes = (0 - reinterpret_cast<std::uintptr_t>(out)) % vector_bytes;
  return bytes % size == 0 ? std::min(bytes / size, count) : count;
}

template <class Op>
void cast_all(const std::byte* in, std::byte* out, std::size_t count) {
  const std::size_t step = 2 * hn::Lanes(F32());
  if (count < step) return cast_few<Op>(in, out, count);

  std::size_t i = 0;
  if constexpr (Op::kOut > 1) {
    const std::size_t head = elements_before_alignment(out, Op::kOut, count);
    if (count >= kStreamCastFromBytes / Op::kOut && head < step) {
      step_once<Op>(in, out);
      for (i = head; i + step <= count; i += step) Op::template step<true>(in + i * Op::kIn, out + i * Op::kOut);
      finish_streaming();
    }
  }
  for (; i + step <= count; i += step) Op::template step<false>(in + i * Op::kIn, out + i * Op::kOut);
  // The last step ends with the last element, and does some elements a second time.
  step_once<Op>(in + (count - step) * Op::kIn, out + (count - step) * Op::kOut);
}

void cast_on_target(SimdCast which, const std::byte* in, std::byte* out, std::size_t count) {
  switch (which) {
    case SimdCast::f32_to_f16: return cast_all<FromF32To16<ToF16>>(in, out, count);
    case SimdCast::f32_to_bf16: return cast_all<FromF32To16<ToBf16>>(in, out, count);
    case SimdCast::f32_to_f8_e4m3: return cast_all<FromF32To8<E4m3Layout>>(in, out, count);
    case SimdCast::f32_to_f8_e5m2: return cast_all<FromF32To8<E5m2Layout>>(in, out, count);
    case SimdCast::f32_to_f8_e4m3fnuz: return cast_all<FromF32To8<E4m3FnuzLayout>>(in, out, count);
    case SimdCast::f32_to_f8_e5m2fnuz: return cast_all<FromF32To8<E5m2FnuzLayout>>(in, out, count);
    case SimdCast::f16_to_f32: return cast_all<From16ToF32<decode_f16>>(in, out, count);
    case SimdCast::f16_to_bf16: return cast_all<From16To16<decode_f16, ToBf16>>(in, out, count);
    case SimdCast::bf16_to_f32: return cast_all<From16ToF32<decode_bf16>>(in, out, count);
    case SimdCast::bf16_to_f16: return cast_all<From16To16<decode_bf16, ToF16>>(in, out, count);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(cast_on_target);

void simd_cast(SimdCast which, const std::byte* in, std::byte* out, std::size_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(cast_on_target)(which, in, out, count);
}

}  // namespace ballast::kernels
#endif
