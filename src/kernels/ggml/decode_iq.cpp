#include "kernels/ggml/decode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/decode_iq.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/decode_inl.hpp"

// The block types whose codes are rows of a grid: IQ1, IQ2 and IQ3. Eight codes come as one word and become floats at
// once. The bits are explained in decode_plain.hpp.
//
// ggml scales by d * (0.5 + s) * 0.25 and the like. The code here scales by (d * 0.125) * (2 * s + 1): d has 11 bits
// and an exponent far from the smallest, so no product of d with a power of two and a few small integers is ever
// rounded.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void decode_iq_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool) {
  decode_plainly(type, in, count, out);
}

#else

template <std::size_t kByteCount>
struct Grid {
  static constexpr std::size_t kElements = 256, kBytes = kByteCount;
};

// Multiplies each code of a row by the scale, or by the negative scale if the code's byte of `minus` is 255. No code is
// zero.
template <bool kStream>
HWY_INLINE void put_signed_row(std::uint64_t row, std::uint64_t minus, float scale, float* out) {
  const hn::CappedTag<float, 8> d;
  const std::uint64_t codes = (row ^ minus) + (minus & kEachByte);
  std::int8_t bytes[8];
  std::memcpy(bytes, &codes, sizeof bytes);
  for (std::size_t i = 0; i < 8; i += hn::Lanes(d))
    put<kStream>(hn::Mul(hn::Set(d, scale), floats_from_codes(d, bytes + i)), d, out + i);
}

HWY_INLINE float odd_scale(std::uint32_t s) { return static_cast<float>(static_cast<std::int32_t>(2 * s + 1)); }

// Writes eight scales from the nibbles of four bytes.
HWY_INLINE void put_odd_scales(const std::uint8_t* in, float d, float* out) {
  put_scales(spread_nibbles(load<std::uint32_t>(in)) * 2 + kEachByte, d, out);
}

struct Iq2Xxs : Grid<66> {
  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    const float d = f16_at(in) * 0.125F;
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint8_t* indices = in + 2 + 8 * g;
      const auto rest = load<std::uint32_t>(indices + 4);
      const float scale = d * odd_scale(rest >> 28);
      for (std::size_t l = 0; l < 4; ++l, out += 8)
        put_signed_row<kStream>(kIq2XxsGrid[indices[l]], kEvenSignBytes[rest >> 7 * l & 127], scale, out);
    }
  }
};

struct Iq2Xs : Grid<74> {
  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    alignas(64) float scales[16];
    const float d = f16_at(in) * 0.125F;
    put_odd_scales(in + 66, d, scales);
    put_odd_scales(in + 70, d, scales + 8);
    for (std::size_t r = 0; r < 32; ++r, out += 8) {
      const std::uint32_t q = load<std::uint16_t>(in + 2 + 2 * r);
      put_signed_row<kStream>(kIq2XsGrid[q & 511], kEvenSignBytes[q >> 9], scales[r / 2], out);
    }
  }
};

struct Iq2S : Grid<82> {
  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    alignas(64) float scales[16];
    const float d = f16_at(in) * 0.125F;
    put_odd_scales(in + 74, d, scales);
    put_odd_scales(in + 78, d, scales + 8);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint8_t *indices = in + 2 + 4 * g, *signs = in + 34 + 4 * g;
      const std::uint32_t tops = in[66 + g];
      for (std::size_t l = 0; l < 4; ++l, out += 8) {
        const std::uint64_t row = kIq2SGrid[indices[l] | (tops << (8 - 2 * l) & 0x300)];
        put_signed_row<kStream>(row, kSignBytes[signs[l]], scales[2 * g + l / 2], out);
      }
    }
  }
};

struct Iq3Xxs : Grid<98> {
  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    const float d = f16_at(in) * 0.25F;
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint8_t* indices = in + 2 + 8 * g;
      const auto rest = load<std::uint32_t>(in + 66 + 4 * g);
      const float scale = d * odd_scale(rest >> 28);
      for (std::size_t l = 0; l < 4; ++l, out += 8) {
        const std::uint64_t row = kIq3XxsGrid[indices[2 * l]] | std::uint64_t{kIq3XxsGrid[indices[2 * l + 1]]} << 32;
        put_signed_row<kStream>(row, kEvenSignBytes[rest >> 7 * l & 127], scale, out);
      }
    }
  }
};

struct Iq3S : Grid<110> {
  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    alignas(64) float scales[8];
    put_odd_scales(in + 106, f16_at(in), scales);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint8_t *indices = in + 2 + 8 * g, *signs = in + 74 + 4 * g;
      const std::uint32_t tops = in[66 + g];
      for (std::size_t l = 0; l < 4; ++l, out += 8) {
        const std::uint64_t first = kIq3SGrid[indices[2 * l] | (tops << (8 - 2 * l) & 0x100)];
        const std::uint64_t second = kIq3SGrid[indices[2 * l + 1] | (tops << (7 - 2 * l) & 0x100)];
        put_signed_row<kStream>(first | second << 32, kSignBytes[signs[l]], scales[g], out);
      }
    }
  }
};

// Moves a row of IQ1 by an eighth and multiplies it by the scale.
template <bool kStream>
HWY_INLINE void put_moved_row(std::uint32_t index, float move, float scale, float* out) {
  const hn::CappedTag<float, 8> d;
  const auto* codes = reinterpret_cast<const std::int8_t*>(&kIq1SGrid[index]);
  for (std::size_t i = 0; i < 8; i += hn::Lanes(d)) {
    const auto moved = hn::Add(floats_from_codes(d, codes + i), hn::Set(d, move));
    put<kStream>(hn::Mul(hn::Set(d, scale), moved), d, out + i);
  }
}

// This is a table instead of a branch, because the bit cannot be predicted.
constexpr float kMoves[] = {0.125F, -0.125F};

struct Iq1S : Grid<50> {
  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    const float d = f16_at(in);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint32_t rest = load<std::uint16_t>(in + 34 + 2 * g);
      const float scale = d * odd_scale(rest >> 12 & 7), move = kMoves[rest >> 15];
      for (std::size_t l = 0; l < 4; ++l, out += 8)
        put_moved_row<kStream>(in[2 + 4 * g + l] | (rest >> 3 * l & 7) << 8, move, scale, out);
    }
  }
};

struct Iq1M : Grid<56> {
  template <bool kStream>
  static HWY_INLINE void decode(const std::uint8_t* in, float* out) {
    const auto rest = load<std::uint64_t>(in + 48);
    const std::uint64_t d_bits = (rest >> 12 & 0xF) | (rest >> 24 & 0xF0) | (rest >> 36 & 0xF00) | rest >> 60 << 12;
    const float d = f16_from(static_cast<std::uint16_t>(d_bits));
    for (std::size_t s = 0; s < 4; ++s) {
      const std::uint32_t scales = load<std::uint16_t>(in + 48 + 2 * s);
      for (std::size_t l = 0; l < 4; ++l, out += 16) {
        const std::uint8_t* indices = in + 8 * s + 2 * l;
        const std::uint32_t tops = in[32 + 4 * s + l];
        const float scale = d * odd_scale(scales >> 3 * l & 7);
        put_moved_row<kStream>(indices[0] | (tops & 0x07) << 8, kMoves[tops >> 3 & 1], scale, out);
        put_moved_row<kStream>(indices[1] | (tops & 0x70) << 4, kMoves[tops >> 7], scale, out + 8);
      }
    }
  }
};

void decode_iq_on_target(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  switch (type) {
    case DType::iq2_xxs: return decode_each<Iq2Xxs>(in, count, out, stream);
    case DType::iq2_xs: return decode_each<Iq2Xs>(in, count, out, stream);
    case DType::iq2_s: return decode_each<Iq2S>(in, count, out, stream);
    case DType::iq3_xxs: return decode_each<Iq3Xxs>(in, count, out, stream);
    case DType::iq3_s: return decode_each<Iq3S>(in, count, out, stream);
    case DType::iq1_s: return decode_each<Iq1S>(in, count, out, stream);
    default: return decode_each<Iq1M>(in, count, out, stream);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(decode_iq_on_target);

void decode_iq(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream) {
  HWY_DYNAMIC_DISPATCH(decode_iq_on_target)(type, in, count, out, stream);
}

}  // namespace ballast::kernels
#endif
