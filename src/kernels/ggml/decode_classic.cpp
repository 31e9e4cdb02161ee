#include "kernels/ggml/decode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/decode_classic.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/decode_inl.hpp"

// The blocks of 32 elements and one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1, and the similar Q8_K. The bits are
// explained in decode_plain.hpp.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void decode_classic_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool) {
  decode_plainly(type, in, count, out);
}
#else

struct Q4_0 : TwoSteps<Q4_0, 32, 18, 32> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q4_0>& out) {
    const U8<16> d;
    out.scales[0] = f16_at(in);
    unpack_nibbles<16>(in + 2, out.codes, [d](auto q, std::size_t) { return hn::Sub(q, hn::Set(d, 8)); });
  }
};

struct Q4_1 : TwoSteps<Q4_1, 32, 20, 32, true> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q4_1>& out) {
    out.scales[0] = f16_at(in);
    out.mins[0] = -f16_at(in + 2);
    unpack_nibbles<16>(in + 4, out.codes, [](auto q, std::size_t) { return q; });
  }
};

struct Q5_0 : TwoSteps<Q5_0, 32, 22, 32> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q5_0>& out) {
    const U8<16> d;
    const auto fifth_bits = load<std::uint32_t>(in + 2);
    out.scales[0] = f16_at(in);
    // Without its fifth bit a code is 16 less, so the four bits above are its sign.
    unpack_nibbles<16>(in + 6, out.codes, [&](auto q, std::size_t first) {
      return hn::Or(q, hn::AndNot(bytes_from_bits(d, fifth_bits, first), hn::Set(d, 0xF0)));
    });
  }
};

struct Q5_1 : TwoSteps<Q5_1, 32, 24, 32, true> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q5_1>& out) {
    const U8<16> d;
    const auto fifth_bits = load<std::uint32_t>(in + 4);
    out.scales[0] = f16_at(in);
    out.mins[0] = -f16_at(in + 2);
    unpack_nibbles<16>(in + 8, out.codes, [&](auto q, std::size_t first) {
      return hn::Or(q, hn::And(bytes_from_bits(d, fifth_bits, first), hn::Set(d, 0x10)));
    });
  }
};

// Codes of 8 bits are used without unpacking.
template <class Type, std::size_t kElementCount, std::size_t kByteCount, std::size_t kCodesAt>
struct EightBits : TwoSteps<Type, kElementCount, kByteCount, kElementCount> {
  static HWY_INLINE const std::int8_t* codes(const std::uint8_t* in, const Unpacked<Type>&) {
    return reinterpret_cast<const std::int8_t*>(in + kCodesAt);
  }
};

struct Q8_0 : EightBits<Q8_0, 32, 34, 2> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q8_0>& out) { out.scales[0] = f16_at(in); }
};

struct Q8_1 : EightBits<Q8_1, 32, 36, 4> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q8_1>& out) { out.scales[0] = f16_at(in); }
};

struct Q8_K : EightBits<Q8_K, 256, 292, 4> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q8_K>& out) { out.scales[0] = load<float>(in); }
};

void decode_classic_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  switch (type) {
    case DType::q4_0: return decode_each<Q4_0>(in, count, out, stream);
    case DType::q4_1: return decode_each<Q4_1>(in, count, out, stream);
    case DType::q5_0: return decode_each<Q5_0>(in, count, out, stream);
    case DType::q5_1: return decode_each<Q5_1>(in, count, out, stream);
    case DType::q8_0: return decode_each<Q8_0>(in, count, out, stream);
    case DType::q8_1: return decode_each<Q8_1>(in, count, out, stream);
    default: return decode_each<Q8_K>(in, count, out, stream);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(decode_classic_on_target);

void decode_classic(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  HWY_DYNAMIC_DISPATCH(decode_classic_on_target)(type, in, count, out, stream);
}

}  // namespace ballast::kernels
#endif
