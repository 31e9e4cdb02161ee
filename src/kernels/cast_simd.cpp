#include "kernels/cast_simd.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cast_simd.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Highway's own conversion to and from F16 is right if the processor has one; otherwise it truncates and handles
// neither Inf nor NaN. (An x86 target with a larger number is an older one.)
#undef BALLAST_NATIVE_F16
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
#define BALLAST_NATIVE_F16 1
#else
#define BALLAST_NATIVE_F16 0
#endif

// All work is done on vectors of 32-bit lanes. Bits are signed integers, because no magnitude reaches the sign bit.
using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;
using U8 = hn::Rebind<std::uint8_t, F32>;
using Floats = hn::VFromD<F32>;
using Bits = hn::VFromD<I32>;
using Shorts = hn::VFromD<U16>;
#if HWY_TARGET != HWY_SCALAR
using WholeU16 = hn::Repartition<std::uint16_t, F32>;
using WholeI16 = hn::Repartition<std::int16_t, F32>;
#endif

constexpr std::int32_t kF32Infinity = 0x7F800000;

// LoadU and StoreU take any address, even if the pointer's type promises alignment.
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
  static constexpr float kFirstTooLarge = 61440;
  static constexpr int kLargest = kInfinity - 1, kOverflow = kLargest;
  static constexpr bool kNanHasPayload = true, kSignedZero = true;
};
struct E4m3Layout : Layout<8, 3, 7> {
  static constexpr float kFirstTooLarge = 0x1.D00002p8F;                    // 464 is rounded down
  static constexpr int kLargest = 0x7E, kOverflow = kLargest, kNan = 0x7F;  // no Inf; all ones is NaN
  static constexpr bool kNanHasPayload = false, kSignedZero = true;
};
struct E4m3FnuzLayout : Layout<8, 3, 8> {
  static constexpr float kFirstTooLarge = 248;
  static constexpr int kLargest = 0x7F, kOverflow = kLargest, kNan = 0x80;  // no Inf; the code of -0 is NaN
  static constexpr bool kNanHasPayload = false, kSignedZero = false;
};
struct E5m2FnuzLayout : Layout<8, 2, 16> {
  static constexpr float kFirstTooLarge = 61440;
  static constexpr int kLargest = 0x7F, kOverflow = kLargest, kNan = 0x80;
  static constexpr bool kNanHasPayload = false, kSignedZero = false;
};

// The code of |x| if |x| is subnormal in L. Adding the power of two whose last place is L's smallest step makes the
// adder round to that step.
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

  // Half a step less one, plus the last bit that stays: this sum carries exactly when rounding to nearest even goes up.
  const Bits last = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d, 1));
  const Bits rounded = hn::Add(hn::Add(magnitude, last), hn::Set(d, (1 << (kShift - 1)) - 1));
  Bits code = hn::Sub(hn::ShiftRight<kShift>(rounded), hn::Set(d, (127 - L::kBias) << L::kMantissa));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(d, (127 - L::kBias + 1) << 23));
  code = hn::IfThenElse(is_subnormal, subnormal_code<L>(magnitude), code);
  code = hn::IfThenElse(hn::Gt(code, hn::Set(d, L::kLargest)), hn::Set(d, L::kOverflow), code);

  if constexpr (L::kNanHasPayload) {
    constexpr int kQuiet = 1 << (L::kMantissa - 1);
    const Bits payload = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d, (1 << L::kMantissa) - 1));
    const Bits nan = hn::Or(payload, hn::Set(d, L::kInfinity | kQuiet));
    if constexpr (L::kOverflow != L::kInfinity)
      code = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, kF32Infinity)), hn::Set(d, L::kInfinity), code);
    code = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kF32Infinity)), nan, code);
  } else {
    code = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kF32Infinity - 1)), hn::Set(d, L::kNan), code);
  }

  Bits sign = hn::And(hn::ShiftRight<32 - L::kBits>(bits), hn::Set(d, 1 << (L::kBits - 1)));
  if constexpr (!L::kSignedZero) sign = hn::IfThenZeroElse(hn::Eq(code, hn::Zero(d)), sign);
  return hn::Or(code, sign);
}

// The largest magnitudes that a cast has seen, lane by lane. For targets of 16 bits they are those of the codes: a code
// that is not finite is an overflow, or the input was not finite. Two more instructions a vector cannot be measured
// beside the memory accesses.
#if HWY_TARGET == HWY_SCALAR
using Seen16 = Bits;
HWY_INLINE Seen16 seen_none() { return hn::Zero(I32()); }
HWY_INLINE Seen16 see_codes(Seen16 seen, Bits low, Bits high) {
  const auto magnitude = [](Bits code) { return hn::And(code, hn::Set(I32(), 0x7FFF)); };
  return hn::Max(seen, hn::Max(magnitude(low), magnitude(high)));
}
HWY_INLINE bool has_seen(Seen16 seen, int code) { return hn::GetLane(seen) >= code; }
#else
using Seen16 = hn::VFromD<WholeI16>;
HWY_INLINE Seen16 seen_none() { return hn::Zero(WholeI16()); }
HWY_INLINE Seen16 see_codes(Seen16 seen, hn::VFromD<WholeU16> codes) {
  const WholeI16 d;
  return hn::Max(seen, hn::And(hn::BitCast(d, codes), hn::Set(d, 0x7FFF)));
}
HWY_INLINE bool has_seen(Seen16 seen, int code) {
  const WholeI16 d;
  return !hn::AllFalse(d, hn::Gt(seen, hn::Set(d, static_cast<std::int16_t>(code - 1))));
}
#endif

// Two vectors of floats become one whole vector of 16-bit values, because only a whole vector can be streamed.
struct ToF16 {
  static constexpr int kInfinity = F16Layout::kInfinity;
  template <bool kStream>
  static HWY_INLINE Seen16 put(Floats low, Floats high, std::byte* out, Seen16 seen) {
#if HWY_TARGET == HWY_SCALAR
    const Bits low_code = encode<F16Layout>(low), high_code = encode<F16Layout>(high);
    store<false>(hn::DemoteTo(U16(), low_code), U16(), out);
    store<false>(hn::DemoteTo(U16(), high_code), U16(), out + 2);
    return see_codes(seen, low_code, high_code);
#elif BALLAST_NATIVE_F16
    const hn::Rebind<hwy::float16_t, F32> f16;
    const auto low_codes = hn::BitCast(U16(), hn::DemoteTo(f16, low));
    const auto high_codes = hn::BitCast(U16(), hn::DemoteTo(f16, high));
    const auto codes = hn::Combine(WholeU16(), high_codes, low_codes);
    store<kStream>(codes, WholeU16(), out);
    return see_codes(seen, codes);
#else
    const auto low_codes = hn::BitCast(WholeU16(), encode<F16Layout>(low));
    const auto high_codes = hn::BitCast(WholeU16(), encode<F16Layout>(high));
    const auto codes = hn::ConcatEven(WholeU16(), high_codes, low_codes);
    store<kStream>(codes, WholeU16(), out);
    return see_codes(seen, codes);
#endif
  }
};

// BF16 is the upper half of an F32, so a cast only has to round: subnormals are not a special case, and Inf follows the
// largest number.
HWY_INLINE Bits round_to_upper_half(Floats value) {
  const I32 d;
  const Bits bits = hn::BitCast(d, value);
  const Bits last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const Bits rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), last);
  const Bits quiet = hn::Or(bits, hn::Set(d, 0x00400000));
  // The bits are tested, not the float: clang 14 would test a float that came from F16 before widening it, one lane
  // after the other.
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7FFFFFFF)), hn::Set(d, kF32Infinity));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

struct ToBf16 {
  static constexpr int kInfinity = kF32Infinity >> 16;
  template <bool kStream>
  static HWY_INLINE Seen16 put(Floats low, Floats high, std::byte* out, Seen16 seen) {
    const Bits low_bits = round_to_upper_half(low), high_bits = round_to_upper_half(high);
#if HWY_TARGET == HWY_SCALAR
    const auto code = [](Bits bits) { return hn::And(hn::ShiftRight<16>(bits), hn::Set(I32(), 0xFFFF)); };
    store<false>(hn::DemoteTo(U16(), code(low_bits)), U16(), out);
    store<false>(hn::DemoteTo(U16(), code(high_bits)), U16(), out + 2);
    return see_codes(seen, code(low_bits), code(high_bits));
#else
    const WholeU16 d;
    const auto codes = hn::ConcatOdd(d, hn::BitCast(d, high_bits), hn::BitCast(d, low_bits));
    store<kStream>(codes, d, out);
    return see_codes(seen, codes);
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

  // The bias grows by 112. An exponent of all ones must stay all ones, so it gets 112 more.
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

// An operation is a step that casts as many elements as two vectors of floats hold, together with the sizes of its
// elements. An operation knows the magnitudes that it has seen, and whether one of them may have been too large.
template <class To>
struct Into16 {
  using Seen = Seen16;
  static HWY_INLINE Seen none() { return seen_none(); }
  static HWY_INLINE bool may_be_too_large(Seen seen) { return has_seen(seen, To::kInfinity); }
};

template <class To>
struct FromF32To16 : Into16<To> {
  static constexpr std::size_t kIn = 4, kOut = 2;
  template <bool kStream>
  static HWY_INLINE Seen16 step(const std::byte* in, std::byte* out, Seen16 seen) {
    return To::template put<kStream>(load(F32(), in), load(F32(), in + 4 * hn::Lanes(F32())), out, seen);
  }
};

template <Floats (*kDecode)(Shorts), class To>
struct From16To16 : Into16<To> {
  static constexpr std::size_t kIn = 2, kOut = 2;
  template <bool kStream>
  static HWY_INLINE Seen16 step(const std::byte* in, std::byte* out, Seen16 seen) {
    return To::template put<kStream>(kDecode(load(U16(), in)), kDecode(load(U16(), in + 2 * hn::Lanes(F32()))), out,
                                     seen);
  }
};

// These targets saturate, so the magnitudes of the floats are kept, not those of the codes.
template <class L>
struct FromF32To8 {
  static constexpr std::size_t kIn = 4, kOut = 1;
  using Seen = Bits;
  static HWY_INLINE Seen none() { return hn::Zero(I32()); }
  static HWY_INLINE bool may_be_too_large(Seen seen) {
    constexpr auto kFirst = std::bit_cast<std::int32_t>(L::kFirstTooLarge);
    return !hn::AllFalse(I32(), hn::Gt(seen, hn::Set(I32(), kFirst - 1)));
  }
  template <bool>
  static HWY_INLINE Seen step(const std::byte* in, std::byte* out, Seen seen) {
    const std::size_t lanes = hn::Lanes(F32());
    const Floats low = load(F32(), in), high = load(F32(), in + 4 * lanes);
    store<false>(hn::DemoteTo(U8(), encode<L>(low)), U8(), out);
    store<false>(hn::DemoteTo(U8(), encode<L>(high)), U8(), out + lanes);
    const auto magnitude = [](Floats value) { return hn::BitCast(I32(), hn::Abs(value)); };
    return hn::Max(seen, hn::Max(magnitude(low), magnitude(high)));
  }
};

template <Floats (*kDecode)(Shorts)>
struct From16ToF32 {
  static constexpr std::size_t kIn = 2, kOut = 4;
  struct Seen {};
  static HWY_INLINE Seen none() { return {}; }
  static HWY_INLINE bool may_be_too_large(Seen) { return false; }
  template <bool kStream>
  static HWY_INLINE Seen step(const std::byte* in, std::byte* out, Seen seen) {
    const std::size_t lanes = hn::Lanes(F32());
    store<kStream>(kDecode(load(U16(), in)), F32(), out);
    store<kStream>(kDecode(load(U16(), in + 2 * lanes)), F32(), out + 4 * lanes);
    return seen;
  }
};

// For the ends of a range: a single copy of the code is enough.
template <class Op>
HWY_NOINLINE typename Op::Seen step_once(const std::byte* in, std::byte* out, typename Op::Seen seen) {
  return Op::template step<false>(in, out, seen);
}

// Casts fewer elements than one step has, through buffers on the stack.
template <class Op>
bool cast_few(const std::byte* in, std::byte* out, std::size_t count) {
  constexpr std::size_t kMost = 2 * hn::MaxLanes(F32());
  alignas(64) std::byte padded_in[kMost * Op::kIn] = {};
  alignas(64) std::byte padded_out[kMost * Op::kOut];
  std::memcpy(padded_in, in, count * Op::kIn);
  const auto seen = step_once<Op>(padded_in, padded_out, Op::none());
  std::memcpy(out, padded_out, count * Op::kOut);
  return Op::may_be_too_large(seen);
}

// How many elements of `size` bytes lie before the first address at which a vector may be streamed; all of them if
// there is no such address.
std::size_t elements_before_alignment(const std::byte* out, std::size_t size, std::size_t count) {
  const std::size_t vector_bytes = hn::Lanes(hn::ScalableTag<std::uint8_t>());
  const std::size_t bytes = (0 - reinterpret_cast<std::uintptr_t>(out)) % vector_bytes;
  return bytes % size == 0 ? std::min(bytes / size, count) : count;
}

template <class Op>
bool cast_all(const std::byte* in, std::byte* out, std::size_t count) {
  const std::size_t step = 2 * hn::Lanes(F32());
  if (count < step) return cast_few<Op>(in, out, count);

  auto seen = Op::none();
  std::size_t i = 0;
  if constexpr (Op::kOut > 1) {
    const std::size_t head = elements_before_alignment(out, Op::kOut, count);
    if (count >= kStreamCastFromBytes / Op::kOut && head < step) {
      seen = step_once<Op>(in, out, seen);
      for (i = head; i + step <= count; i += step) {
        fetch_further_on(in + i * Op::kIn, step * Op::kIn);
        seen = Op::template step<true>(in + i * Op::kIn, out + i * Op::kOut, seen);
      }
      finish_streaming();
    }
  }
  for (; i + step <= count; i += step) seen = Op::template step<false>(in + i * Op::kIn, out + i * Op::kOut, seen);
  // The last step ends at the last element, so it casts some elements a second time.
  return Op::may_be_too_large(step_once<Op>(in + (count - step) * Op::kIn, out + (count - step) * Op::kOut, seen));
}

bool cast_on_target(SimdCast which, const std::byte* in, std::byte* out, std::size_t count) {
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
  return false;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(cast_on_target);

bool simd_cast(SimdCast which, const std::byte* in, std::byte* out, std::size_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(cast_on_target)(which, in, out, count);
}

}  // namespace ballast::kernels
#endif
