#include "kernels/ggml/decode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/decode_small.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/decode_inl.hpp"

// Codes of four bits that are looked up (IQ4_NL, IQ4_XS, MXFP4, NVFP4), and codes of fewer bits (TQ1_0, TQ2_0, Q1_0,
// Q2_0). The bits are explained in decode_plain.hpp.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void decode_small_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool) {
  decode_plainly(type, in, count, out);
}

#else

// Looks up the low nibbles of 16 bytes and then the high nibbles.
HWY_INLINE void look_up_nibbles(const std::array<std::int8_t, 16>& values, const std::uint8_t* in, std::int8_t* codes) {
  const U8<16> d;
  unpack_nibbles<16>(in, codes, [&](auto q, std::size_t) { return look_up(d, values, q); });
}

struct Iq4Nl : TwoSteps<Iq4Nl, 32, 18, 32> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Iq4Nl>& out) {
    out.scales[0] = f16_at(in);
    look_up_nibbles(kIq4Values, in + 2, out.codes);
  }
};

struct Iq4Xs : TwoSteps<Iq4Xs, 256, 136, 32> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Iq4Xs>& out) {
    const std::uint64_t tops = spread_pairs(load<std::uint16_t>(in + 2)) << 4;
    put_scales<32>(spread_nibbles(load<std::uint32_t>(in + 4)) | tops, f16_at(in), out.scales);
    for (std::size_t g = 0; g < 8; ++g) look_up_nibbles(kIq4Values, in + 8 + 16 * g, out.codes + 32 * g);
  }
};

struct Mxfp4 : TwoSteps<Mxfp4, 32, 17, 32> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Mxfp4>& out) {
    out.scales[0] = half_e8m0(in[0]);
    look_up_nibbles(kFp4Values, in + 1, out.codes);
  }
};

struct Nvfp4 : TwoSteps<Nvfp4, 64, 36, 16> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Nvfp4>& out) {
    const U8<16> d;
    const hn::Repartition<std::uint64_t, decltype(d)> d64;
    for (std::size_t g = 0; g < 4; ++g) out.scales[g] = kHalfUe4m3[in[g]];
    for (std::size_t i = 0; i < 2; ++i) {
      // There are two groups of 8 bytes, so the low and the high nibbles are interleaved by halves of a vector.
      const auto pairs = hn::LoadU(d, in + 4 + 16 * i);
      const auto low = hn::BitCast(d64, look_up(d, kFp4Values, field<0, 15>(d, pairs)));
      const auto high = hn::BitCast(d64, look_up(d, kFp4Values, field<4, 15>(d, pairs)));
      store_codes(hn::BitCast(d, hn::InterleaveLower(d64, low, high)), d, out.codes + 32 * i);
      store_codes(hn::BitCast(d, hn::InterleaveUpper(d64, low, high)), d, out.codes + 32 * i + 16);
    }
  }
};

// The first ternary digit of each byte, less one. The byte is a fraction of 256, and a third of 256 is 85 1/3.
template <class D>
HWY_INLINE hn::VFromD<D> first_trits(D d, hn::VFromD<D> bytes) {
  const hn::RebindToSigned<D> di;
  const auto moved = hn::BitCast(di, hn::Xor(bytes, hn::Set(d, 0x80)));  // all comparisons are signed
  const auto above_one = hn::VecFromMask(di, hn::Gt(moved, hn::Set(di, 85 - 128)));
  const auto above_two = hn::VecFromMask(di, hn::Gt(moved, hn::Set(di, 170 - 128)));
  return hn::BitCast(d, hn::Sub(hn::Sub(hn::Set(di, -1), above_one), above_two));
}

// The digits of kCount bytes: kDigits times kCount elements.
template <std::size_t kCount, std::size_t kDigits>
HWY_INLINE void unpack_trits(const std::uint8_t* in, std::int8_t* codes) {
  const U8<kCount> d;
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(d)) {
    auto bytes = hn::LoadU(d, in + i);
    for (std::size_t n = 0; n < kDigits; ++n) {
      store_codes(first_trits(d, bytes), d, codes + n * kCount + i);
      bytes = hn::Add(bytes, hn::Add(bytes, bytes));
    }
  }
}

struct Tq1_0 : TwoSteps<Tq1_0, 256, 54, 256> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Tq1_0>& out) {
    out.scales[0] = f16_at(in + 52);
    unpack_trits<32, 5>(in, out.codes);
    unpack_trits<16, 5>(in + 32, out.codes + 160);
    unpack_trits<4, 4>(in + 48, out.codes + 240);
  }
};

struct Tq2_0 : TwoSteps<Tq2_0, 256, 66, 256> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Tq2_0>& out) {
    const U8<32> d;
    const auto decode = [d](auto q, std::size_t, std::size_t) { return hn::Sub(q, hn::Set(d, 1)); };
    out.scales[0] = f16_at(in + 64);
    unpack_pairs(in, out.codes, decode);
    unpack_pairs(in + 32, out.codes + 128, decode);
  }
};

struct Q1_0 : TwoSteps<Q1_0, 128, 18, 128> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q1_0>& out) {
    const U8<32> d;
    out.scales[0] = f16_at(in);
    for (std::size_t i = 0; i < 128; i += hn::Lanes(d)) {
      const auto is_set = bytes_from_bits(d, load<std::uint32_t>(in + 2 + i / 32 * 4), i % 32);
      store_codes(hn::Or(hn::Not(is_set), hn::Set(d, 1)), d, out.codes + i);  // 1, and 255 for -1
    }
  }
};

struct Q2_0 : TwoSteps<Q2_0, 64, 18, 64> {
  static HWY_INLINE void unpack(const std::uint8_t* in, Unpacked<Q2_0>& out) {
    const U8<16> d;
    out.scales[0] = f16_at(in);
    for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
      const auto fours = hn::LoadU(d, in + 2 + i);
      const auto less_one = [d](auto q) { return hn::Sub(q, hn::Set(d, 1)); };
      hn::StoreInterleaved4(less_one(field<0, 3>(d, fours)), less_one(field<2, 3>(d, fours)),
                            less_one(field<4, 3>(d, fours)), less_one(field<6, 3>(d, fours)), d,
                            reinterpret_cast<std::uint8_t*>(out.codes + 4 * i));
    }
  }
};

void decode_small_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  switch (type) {
    case DType::iq4_nl: return decode_each<Iq4Nl>(in, count, out, stream);
    case DType::iq4_xs: return decode_each<Iq4Xs>(in, count, out, stream);
    case DType::mxfp4: return decode_each<Mxfp4>(in, count, out, stream);
    case DType::nvfp4: return decode_each<Nvfp4>(in, count, out, stream);
    case DType::tq1_0: return decode_each<Tq1_0>(in, count, out, stream);
    case DType::tq2_0: return decode_each<Tq2_0>(in, count, out, stream);
    case DType::q1_0: return decode_each<Q1_0>(in, count, out, stream);
    default: return decode_each<Q2_0>(in, count, out, stream);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(decode_small_on_target);

void decode_small(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  HWY_DYNAMIC_DISPATCH(decode_small_on_target)(type, in, count, out, stream);
}

}  // namespace ballast::kernels
#endif
