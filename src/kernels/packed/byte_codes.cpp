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

// Exponent and mantissa become those of a float that is 2^120 times too small: the product is exact, also of subnormal
// numbers. All ones are NaN.
void e4m3_numbers_on(const std::uint8_t* in, std::size_t count, float* out) {
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
