#include "kernels/packed/byte_codes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed/byte_codes.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Makes floats of bytes, a vector at a time and the last ones by themselves: one(tag, bytes as words) is called for
// both.
template <class One>
HWY_INLINE void for_each_byte(const std::uint8_t* in, std::size_t count, float* out, const One& one) {
  std::size_t i = 0;
  const auto run = [&](auto d) {
    const hn::RebindToUnsigned<decltype(d)> words;
    const hn::Rebind<std::uint8_t, decltype(d)> bytes;
    for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
      hn::StoreU(one(d, hn::PromoteTo(words, hn::LoadU(bytes, in + i))), d, out + i);
  };
  run(hn::ScalableTag<float>());
  run(hn::CappedTag<float, 1>());
}

void byte_fields_on(const ByteField& field, const std::uint8_t* in, std::size_t count, float* out) {
  for_each_byte(in, count, out, [&](auto d, auto words) {
    const hn::RebindToUnsigned<decltype(d)> du;
    const hn::RebindToSigned<decltype(d)> di;
    const auto code = hn::And(hn::ShiftRightSame(words, static_cast<int>(field.shift)), hn::Set(du, field.mask));
    return hn::Sub(hn::ConvertTo(d, hn::BitCast(di, code)), hn::Set(d, field.center));
  });
}

// Whether Highway's own conversion from F16 is the processor's, which is exact. (An x86 target with a larger number is
// an older one.)
#undef BALLAST_NATIVE_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define BALLAST_NATIVE_F16 1
#else
#define BALLAST_NATIVE_F16 0
#endif

#if BALLAST_NATIVE_F16
// The bits of an F8_E4M3 are those of an F16 that is 2^8 times too small, whatever its exponent is. Returns how many
// elements were made: a vector that has a NaN is left for others.
std::size_t e4m3_by_f16(const std::uint8_t* in, std::size_t count, float* out) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<std::uint16_t> d16;
  const hn::Half<decltype(d16)> half;
  const hn::Rebind<hwy::float16_t, decltype(d)> f16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const auto scale = hn::Set(d, 256.0F);
  std::size_t i = 0;
  for (; i + hn::Lanes(d16) <= count; i += hn::Lanes(d16)) {
    const auto codes = hn::PromoteTo(d16, hn::LoadU(d8, in + i));
    const auto magnitude = hn::And(codes, hn::Set(d16, 0x7F));
    if (!hn::AllFalse(d16, hn::Eq(magnitude, hn::Set(d16, 0x7F)))) break;
    const auto sign = hn::ShiftLeft<8>(hn::Xor(codes, magnitude));
    const auto numbers = hn::Or(hn::ShiftLeft<7>(magnitude), sign);
    const auto lower = hn::PromoteTo(d, hn::BitCast(f16, hn::LowerHalf(half, numbers)));
    const auto upper = hn::PromoteTo(d, hn::BitCast(f16, hn::UpperHalf(half, numbers)));
    hn::StoreU(hn::Mul(lower, scale), d, out + i);
    hn::StoreU(hn::Mul(upper, scale), d, out + i + hn::Lanes(d));
  }
  return i;
}
#endif

// Exponent and mantissa become those of a float that is 2^120 times too small: the product is exact, also of subnormal
// numbers. All ones are NaN.
void e4m3_numbers_on(const std::uint8_t* in, std::size_t count, float* out) {
#if BALLAST_NATIVE_F16
  const std::size_t done = e4m3_by_f16(in, count, out);
  in += done, count -= done, out += done;
#endif
  for_each_byte(in, count, out, [](auto d, auto words) {
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto magnitude = hn::And(words, hn::Set(du, 0x7F));
    const auto sign = hn::ShiftLeft<24>(hn::And(words, hn::Set(du, 0x80)));
    const auto number = hn::Mul(hn::BitCast(d, hn::ShiftLeft<20>(magnitude)), hn::Set(d, 0x1p120F));
    const auto nan = hn::BitCast(d, hn::Set(du, 0x7FC00000));
    const auto is_nan = hn::RebindMask(d, hn::Eq(magnitude, hn::Set(du, 0x7F)));
    return hn::Or(hn::IfThenElse(is_nan, nan, number), hn::BitCast(d, sign));
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {
namespace {

HWY_EXPORT(byte_fields_on);
HWY_EXPORT(e4m3_numbers_on);

const std::uint8_t* bytes_of(std::span<const std::byte> in) { return reinterpret_cast<const std::uint8_t*>(in.data()); }

}  // namespace

void byte_fields(const ByteField& field, std::span<const std::byte> in, float* out) noexcept {
  HWY_DYNAMIC_DISPATCH(byte_fields_on)(field, bytes_of(in), in.size(), out);
}

void e4m3_numbers(std::span<const std::byte> in, float* out) noexcept {
  HWY_DYNAMIC_DISPATCH(e4m3_numbers_on)(bytes_of(in), in.size(), out);
}

}  // namespace ballast::kernels
#endif  // HWY_ONCE
