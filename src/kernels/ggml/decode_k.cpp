#include "kernels/ggml/decode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/decode_k.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/decode_inl.hpp"

// The blocks of 256 elements in groups, each with a small scale: Q2_K to Q6_K. The bits are explained in
// decode_plain.hpp.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void decode_k_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool) {
  decode_plainly(type, in, count, out);
}

#else

struct Q2_K : TwoSteps<Q2_K, 256, 84, 16, true> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q2_K>& out) {
    const float d = f16_at(in + 80), dmin = f16_at(in + 82);
    for (std::size_t i = 0; i < 16; i += 8) {
      const auto scales = load<std::uint64_t>(in + i);
      put_scales(scales & 15 * kEachByte, d, out.scales + i);
      put_scales(scales >> 4 & 15 * kEachByte, dmin, out.mins + i);
    }
    unpack_pairs(in + 16, out.codes, [](auto q, std::size_t, std::size_t) { return q; });
    unpack_pairs(in + 48, out.codes + 128, [](auto q, std::size_t, std::size_t) { return q; });
  }
};

// Eight of sixteen scales of 6 bits in 12 bytes: four bits are a nibble of the first eight bytes, and the upper two
// bits lie in the last four bytes.
template <int kStep>
HWY_INLINE std::uint64_t q3_scales(const std::uint8_t* in) {
  const auto nibbles = load<std::uint64_t>(in) >> 4 * kStep & 15 * kEachByte;
  const std::uint64_t tops = load<std::uint32_t>(in + 8) >> 4 * kStep;
  return nibbles | (tops & 0x0303'0303) << 4 | (tops >> 2 & 0x0303'0303) << 36;
}

struct Q3_K : TwoSteps<Q3_K, 256, 110, 16> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q3_K>& out) {
    const U8<32> d;
    const float scale = f16_at(in + 108);
    put_scales<32>(q3_scales<0>(in + 96), scale, out.scales);
    put_scales<32>(q3_scales<1>(in + 96), scale, out.scales + 8);
    for (std::size_t half = 0; half < 2; ++half) {
      // Without its third bit a code is 4 less, so the six bits above are its sign.
      unpack_pairs(in + 32 + 32 * half, out.codes + 128 * half, [&](auto q, std::size_t first, std::size_t shift) {
        const auto bit = hn::Set(d, static_cast<std::uint8_t>(1U << (4 * half + shift)));
        const auto is_unset = hn::VecFromMask(d, hn::Eq(hn::And(hn::LoadU(d, in + first), bit), hn::Zero(d)));
        return hn::Or(q, hn::And(is_unset, hn::Set(d, 0xFC)));
      });
    }
  }
};

// The eight scales and the eight mins of Q4_K and Q5_K, 6 bits each in 12 bytes.
template <class Block>
HWY_INLINE void unpack_scales_and_mins(const std::uint8_t* in, Block& out) {
  const auto a = load<std::uint32_t>(in + 4), b = load<std::uint32_t>(in + 8), c = load<std::uint32_t>(in + 12);
  const std::uint64_t scales = (c & 0x0F0F'0F0F) | (a >> 2 & 0x3030'3030);
  const std::uint64_t mins = (c >> 4 & 0x0F0F'0F0F) | (b >> 2 & 0x3030'3030);
  put_scales((a & 0x3F3F'3F3F) | scales << 32, f16_at(in), out.scales);
  put_scales((b & 0x3F3F'3F3F) | mins << 32, f16_at(in + 2), out.mins);
}

struct Q4_K : TwoSteps<Q4_K, 256, 144, 32, true> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q4_K>& out) {
    unpack_scales_and_mins(in, out);
    for (std::size_t i = 0; i < 4; ++i)
      unpack_nibbles<32>(in + 16 + 32 * i, out.codes + 64 * i, [](auto q, std::size_t) { return q; });
  }
};

struct Q5_K : TwoSteps<Q5_K, 256, 176, 32, true> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q5_K>& out) {
    const U8<32> d;
    unpack_scales_and_mins(in, out);
    for (std::size_t i = 0; i < 4; ++i) {
      unpack_nibbles<32>(in + 48 + 32 * i, out.codes + 64 * i, [&](auto q, std::size_t first) {
        const auto bit = hn::Set(d, static_cast<std::uint8_t>(1U << (2 * i + first / 32)));
        const auto is_set = hn::VecFromMask(d, hn::Eq(hn::And(hn::LoadU(d, in + 16 + first % 32), bit), bit));
        return hn::Or(q, hn::And(is_set, hn::Set(d, 16)));
      });
    }
  }
};

struct Q6_K : TwoSteps<Q6_K, 256, 210, 16> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q6_K>& out) {
    const float d = f16_at(in + 208);
    put_scales(load<std::uint64_t>(in + 192), d, out.scales);
    put_scales(load<std::uint64_t>(in + 200), d, out.scales + 8);
    for (std::size_t half = 0; half < 2; ++half)
      unpack_half(in + 64 * half, in + 128 + 32 * half, out.codes + 128 * half);
  }

  static HWY_INLINE void unpack_half(const std::uint8_t* low, const std::uint8_t* high, std::int8_t* codes) {
    const U8<32> d;
    const auto code = [&](auto low_bits, auto high_bits) {
      return hn::Sub(hn::Or(low_bits, high_bits), hn::Set(d, 32));
    };
    for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
      const auto a = hn::LoadU(d, low + i), b = hn::LoadU(d, low + 32 + i), tops = hn::LoadU(d, high + i);
      store_codes(code(field<0, 15>(d, a), field<-4, 0x30>(d, tops)), d, codes + i);
      store_codes(code(field<0, 15>(d, b), field<-2, 0x30>(d, tops)), d, codes + 32 + i);
      store_codes(code(field<4, 15>(d, a), field<0, 0x30>(d, tops)), d, codes + 64 + i);
      store_codes(code(field<4, 15>(d, b), field<2, 0x30>(d, tops)), d, codes + 96 + i);
    }
  }
};

void decode_k_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  switch (type) {
    case DType::q2_k: return decode_each<Q2_K>(in, count, out, stream);
    case DType::q3_k: return decode_each<Q3_K>(in, count, out, stream);
    case DType::q4_k: return decode_each<Q4_K>(in, count, out, stream);
    case DType::q5_k: return decode_each<Q5_K>(in, count, out, stream);
    default: return decode_each<Q6_K>(in, count, out, stream);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(decode_k_on_target);

void decode_k(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  HWY_DYNAMIC_DISPATCH(decode_k_on_target)(type, in, count, out, stream);
}

}  // namespace ballast::kernels
#endif
