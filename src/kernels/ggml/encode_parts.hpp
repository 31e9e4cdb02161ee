// The code that the plain and the vector encoders of ggml's block types share: the arithmetic of a scale, and the
// packing of codes into bits. decode_plain.hpp explains where the bits of each type lie.
//
// Before they are packed, codes are one byte an element and begin at 0.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/ggml/tables.hpp"

namespace ballast::kernels::plain {

// Rounds to nearest even. NaN keeps its sign and nothing else, as in ggml.
inline std::uint16_t f16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 << 15, magnitude = bits & 0x7FFF'FFFF;
  const auto signed_code = [sign](std::uint32_t code) { return static_cast<std::uint16_t>(sign | code); };
  if (magnitude > 0x7F80'0000) return signed_code(0x7E00);
  if (magnitude >= 0x477F'F000) return signed_code(0x7C00);  // 65520, halfway between the largest number and the next
  // A subnormal is a multiple of 2^-24, which is also the value of the last bit of 0.5.
  if (magnitude < 0x3880'0000)
    return signed_code(std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) & 0x7FF);
  return signed_code((magnitude - 0x3800'0000 + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

inline void put_u16(std::uint32_t value, std::uint8_t* out) {
  out[0] = static_cast<std::uint8_t>(value);
  out[1] = static_cast<std::uint8_t>(value >> 8);
}
inline void put_u32(std::uint32_t value, std::uint8_t* out) {
  put_u16(value, out);
  put_u16(value >> 16, out + 2);
}
inline void put_f16(float value, std::uint8_t* out) { put_u16(f16_bits(value), out); }

// 1/d, or 0 if d is zero or so small that it is zero in F16. ggml divides by such a small d, and its C then converts an
// infinity, which is undefined.
inline float inverse(float d) {
  const float result = d != 0 ? 1 / d : 0;
  return std::fabs(result) <= std::numeric_limits<float>::max() ? result : 0;
}

// Rounds to nearest even by a sum whose last bit is worth 1. Past 2^22 the result is meaningless, but it is the same as
// ggml's, for infinities and NaN too.
constexpr float kRoundingBias = 0x1.8p23F;
inline int nearest(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + kRoundingBias);
  return static_cast<int>(bits & 0x007F'FFFF) - 0x0040'0000;
}

// The number of the largest magnitude, with its sign: the first one if there are several, 0 if all numbers are zeros.
inline float farthest_from_zero(const float* x, int count) {
  float farthest = 0, magnitude = 0;
  for (int j = 0; j < count; ++j) {
    if (!(std::fabs(x[j]) > magnitude)) continue;
    magnitude = std::fabs(x[j]);
    farthest = x[j];
  }
  return farthest;
}

// MXFP4: the exponent of the largest magnitude less the exponent of 4, the power of two below the largest code. ggml
// takes the exponent from the rounded logarithm, so just below a large power of two it is one more than the exponent;
// and a negative result wraps to a scale so large that all codes are zero.
inline std::uint8_t e8m0_code(float largest) {
  if (!(largest > 0)) return 0;
  return static_cast<std::uint8_t>(static_cast<int>(std::floor(std::log2(largest))) - 2 + 127);
}

// NVFP4: E4M3 without a sign, halves rounded up. As in ggml, the subnormals do not round up to the first normal number,
// and every value from 256 on becomes 448.
inline std::uint8_t ue4m3_code(float value) {
  value = std::min(value, 448.0F);
  if (!(value >= 0x1p-6F)) return static_cast<std::uint8_t>(std::min(static_cast<int>(value * 512 + 0.5F), 7));
  const std::uint32_t code = ((std::bit_cast<std::uint32_t>(value) + 0x8'0000) >> 20) - (127 - 7) * 8;
  return static_cast<std::uint8_t>(code >= 15 * 8 ? 0x7E : code);
}

// 2 * kHalf codes of 4 bits; the first half goes into the low nibbles.
template <int kHalf>
inline void pack_nibbles(const std::uint8_t* codes, std::uint8_t* out) {
  for (int j = 0; j < kHalf; ++j) out[j] = static_cast<std::uint8_t>((codes[j] & 15) | codes[j + kHalf] << 4);
}

// 128 codes of 2 bits in 32 bytes; each 32 codes lie two bits further up than the 32 before.
inline void pack_pairs(const std::uint8_t* codes, std::uint8_t* out) {
  for (int j = 0; j < 32; ++j)
    out[j] = static_cast<std::uint8_t>((codes[j] & 3) | (codes[j + 32] & 3) << 2 | (codes[j + 64] & 3) << 4 |
                                       codes[j + 96] << 6);
}

// The fifth bits of 32 codes.
inline std::uint32_t fifth_bits(const std::uint8_t* codes) {
  std::uint32_t bits = 0;
  for (int j = 0; j < 32; ++j) bits |= (codes[j] >> 4 & 1U) << j;
  return bits;
}

// Five ternary digits, kStep codes apart, as a fraction of 256. The fraction is rounded up, so that multiplying by 3
// brings each digit back over the point. If there are only four digits, the last one is zero.
template <int kBytes, int kDigits, int kStep = kBytes>
inline void pack_trits(const std::uint8_t* codes, std::uint8_t* out) {
  for (int j = 0; j < kBytes; ++j) {
    unsigned q = 0;
    for (int n = 0; n < 5; ++n) q = q * 3 + (n < kDigits ? codes[j + n * kStep] : 0);
    out[j] = static_cast<std::uint8_t>((q * 256 + 242) / 243);
  }
}

inline void pack_tq1_0(const std::uint8_t* codes, std::uint8_t* out) {
  pack_trits<32, 5>(codes, out);
  pack_trits<16, 5>(codes + 160, out + 32);
  pack_trits<4, 4>(codes + 240, out + 48);
}

inline void pack_tq2_0(const std::uint8_t* codes, std::uint8_t* out) {
  pack_pairs(codes, out);
  pack_pairs(codes + 128, out + 32);
}

// 64 codes of 2 bits, four neighbours a byte.
inline void pack_q2_0(const std::uint8_t* codes, std::uint8_t* out) {
  for (int j = 0; j < 16; ++j)
    out[j] =
        static_cast<std::uint8_t>(codes[4 * j] | codes[4 * j + 1] << 2 | codes[4 * j + 2] << 4 | codes[4 * j + 3] << 6);
}

}  // namespace ballast::kernels::plain
