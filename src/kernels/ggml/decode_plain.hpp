// The meaning of ggml's block types, one function a type: each turns the bytes of one block into its elements, in plain
// loops.
//
// This is the reference that the vector code is tested against and measured by, and the code that runs if a processor
// has no vectors. The comment above each function is the structure of its block; all numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <ballast/dtype.hpp>
#include <ballast/float16.hpp>

#include "kernels/ggml/tables.hpp"

namespace ballast::kernels::plain {

using Bytes = const std::uint8_t*;

inline std::uint32_t u16(Bytes in) { return in[0] | std::uint32_t{in[1]} << 8; }
inline std::uint32_t u32(Bytes in) { return u16(in) | u16(in + 2) << 16; }
inline float f16(Bytes in) { return float16{static_cast<std::uint16_t>(u16(in))}; }
inline float f32(Bytes in) { return std::bit_cast<float>(u32(in)); }
inline int low(std::uint8_t byte) { return byte & 15; }
inline int high(std::uint8_t byte) { return byte >> 4; }
inline int bit(Bytes in, int i) { return in[i / 8] >> i % 8 & 1; }
inline float number(int value) { return static_cast<float>(value); }

// f16 d; u8 qs[16]: elements 0 to 15 are the low nibbles, 16 to 31 the high ones
inline void q4_0(Bytes in, float* y) {
  const float d = f16(in);
  for (int j = 0; j < 16; ++j) {
    y[j] = number(low(in[2 + j]) - 8) * d;
    y[j + 16] = number(high(in[2 + j]) - 8) * d;
  }
}

// f16 d, m; u8 qs[16]
inline void q4_1(Bytes in, float* y) {
  const float d = f16(in), m = f16(in + 2);
  for (int j = 0; j < 16; ++j) {
    y[j] = number(low(in[4 + j])) * d + m;
    y[j + 16] = number(high(in[4 + j])) * d + m;
  }
}

// f16 d; u8 qh[4], the fifth bit of each element; u8 qs[16]
inline void q5_0(Bytes in, float* y) {
  const float d = f16(in);
  for (int j = 0; j < 16; ++j) {
    y[j] = number((low(in[6 + j]) | bit(in + 2, j) << 4) - 16) * d;
    y[j + 16] = number((high(in[6 + j]) | bit(in + 2, j + 16) << 4) - 16) * d;
  }
}

// f16 d, m; u8 qh[4]; u8 qs[16]
inline void q5_1(Bytes in, float* y) {
  const float d = f16(in), m = f16(in + 2);
  for (int j = 0; j < 16; ++j) {
    y[j] = number(low(in[8 + j]) | bit(in + 4, j) << 4) * d + m;
    y[j + 16] = number(high(in[8 + j]) | bit(in + 4, j + 16) << 4) * d + m;
  }
}

// f16 d; i8 qs[32]
inline void q8_0(Bytes in, float* y) {
  const float d = f16(in);
  for (int j = 0; j < 32; ++j) y[j] = number(static_cast<std::int8_t>(in[2 + j])) * d;
}

// f16 d, s; i8 qs[32]. The sum s = d * sum(qs) is for dot products.
inline void q8_1(Bytes in, float* y) {
  const float d = f16(in);
  for (int j = 0; j < 32; ++j) y[j] = number(static_cast<std::int8_t>(in[4 + j])) * d;
}

// u8 scales[16], scale in the low nibble and min in the high one; u8 qs[64]; f16 d, dmin.
// Each 32 of 128 elements are two bits of the same 32 bytes.
inline void q2_k(Bytes in, float* y) {
  const float d = f16(in + 80), dmin = f16(in + 82);
  for (int i = 0; i < 256; ++i) {
    const std::uint8_t scale = in[i / 16];
    const int q = in[16 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    y[i] = d * number(low(scale)) * number(q) - dmin * number(high(scale));
  }
}

// u8 hmask[32]; u8 qs[64]; u8 scales[12]; f16 d.
// A scale is 6 bits less 32: 4 bits from the nibbles of the first 8 bytes, 2 from the last 4 bytes.
inline void q3_k(Bytes in, float* y) {
  const Bytes qs = in + 32, scales = in + 96;
  const float d = f16(in + 108);
  for (int i = 0; i < 256; ++i) {
    const int g = i / 16;
    const int low_bits = g < 8 ? low(scales[g]) : high(scales[g - 8]), high_bits = scales[8 + g % 4] >> g / 4 * 2 & 3;
    const int q = qs[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    const int without_high_bit = (in[i % 32] >> i / 32 & 1) != 0 ? 0 : 4;
    y[i] = d * number((low_bits | high_bits << 4) - 32) * number(q - without_high_bit);
  }
}

// The eight scales and mins of Q4_K and Q5_K, 6 bits each in 12 bytes.
struct ScaleMin {
  int scale, min;
};
inline ScaleMin scale_min(Bytes s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {low(s[j + 4]) | s[j - 4] >> 6 << 4, high(s[j + 4]) | s[j] >> 6 << 4};
}

// f16 d, dmin; u8 scales[12]; u8 qs[128]: each 64 elements are 32 low nibbles and then 32 high ones
inline void q4_k(Bytes in, float* y) {
  const float d = f16(in), dmin = f16(in + 2);
  for (int i = 0; i < 256; ++i) {
    const auto [scale, min] = scale_min(in + 4, i / 32);
    const std::uint8_t pair = in[16 + i / 64 * 32 + i % 32];
    const int q = i % 64 < 32 ? low(pair) : high(pair);
    y[i] = d * number(scale) * number(q) - dmin * number(min);
  }
}

// f16 d, dmin; u8 scales[12]; u8 qh[32], bit i/32 is the fifth bit of element i; u8 qs[128]
inline void q5_k(Bytes in, float* y) {
  const float d = f16(in), dmin = f16(in + 2);
  for (int i = 0; i < 256; ++i) {
    const auto [scale, min] = scale_min(in + 4, i / 32);
    const std::uint8_t pair = in[48 + i / 64 * 32 + i % 32];
    const int q = (i % 64 < 32 ? low(pair) : high(pair)) | (in[16 + i % 32] >> i / 32 & 1) << 4;
    y[i] = d * number(scale) * number(q) - dmin * number(min);
  }
}

// u8 ql[128]; u8 qh[64]; i8 scales[16]; f16 d.
// Each 128 elements are 64 low nibbles of ql, then the 64 high ones; each 32 have two bits of the same 32 bytes of qh.
inline void q6_k(Bytes in, float* y) {
  const float d = f16(in + 208);
  for (int i = 0; i < 256; ++i) {
    const std::uint8_t pair = in[i / 128 * 64 + i % 64];
    const int low_bits = i % 128 < 64 ? low(pair) : high(pair);
    const int high_bits = in[128 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    const auto scale = static_cast<std::int8_t>(in[192 + i / 16]);
    y[i] = d * number(scale) * number((low_bits | high_bits << 4) - 32);
  }
}

// f32 d; i8 qs[256]; i16 bsums[16], for dot products
inline void q8_k(Bytes in, float* y) {
  const float d = f32(in);
  for (int i = 0; i < 256; ++i) y[i] = d * number(static_cast<std::int8_t>(in[4 + i]));
}

// 8 elements: a row of a grid with its signs, one bit each.
inline void signed_row(std::uint64_t row, std::uint32_t signs, float scale, float* y) {
  for (int j = 0; j < 8; ++j) {
    const float value = scale * number(static_cast<int>(row >> 8 * j & 255));
    y[j] = (signs >> j & 1) != 0 ? -value : value;
  }
}

// f16 d; 8 times {u8 index[4]; u32: four times 7 bits of signs, and a scale of 4 bits on top}
inline void iq2_xxs(Bytes in, float* y) {
  const float d = f16(in);
  for (int g = 0; g < 8; ++g) {
    const Bytes group = in + 2 + 8 * g;
    const std::uint32_t rest = u32(group + 4);
    const float scale = d * (0.5F + number(static_cast<int>(rest >> 28))) * 0.25F;
    for (int l = 0; l < 4; ++l)
      signed_row(kIq2XxsGrid[group[l]], even_signs(rest >> 7 * l & 127), scale, y + 32 * g + 8 * l);
  }
}

// f16 d; u16 qs[32]: 9 bits of index, 7 of signs; u8 scales[8], a nibble for 16 elements
inline void iq2_xs(Bytes in, float* y) {
  const float d = f16(in);
  for (int r = 0; r < 32; ++r) {
    const std::uint32_t q = u16(in + 2 + 2 * r);
    const int scale = in[66 + r / 4] >> r / 2 % 2 * 4 & 15;
    signed_row(kIq2XsGrid[q & 511], even_signs(q >> 9), d * (0.5F + number(scale)) * 0.25F, y + 8 * r);
  }
}

// f16 d; u8 qs[32]; u8 signs[32]; u8 qh[8], bits 8 and 9 of four indices; u8 scales[8]
inline void iq2_s(Bytes in, float* y) {
  const float d = f16(in);
  for (int r = 0; r < 32; ++r) {
    const unsigned index = in[2 + r] | (in[66 + r / 4] >> r % 4 * 2 & 3U) << 8;
    const int scale = in[74 + r / 4] >> r / 2 % 2 * 4 & 15;
    signed_row(kIq2SGrid[index], in[34 + r], d * (0.5F + number(scale)) * 0.25F, y + 8 * r);
  }
}

// f16 d; u8 qs[64]; 8 times u32: four times 7 bits of signs, and a scale of 4 bits on top
inline void iq3_xxs(Bytes in, float* y) {
  const float d = f16(in);
  for (int r = 0; r < 32; ++r) {
    const std::uint32_t rest = u32(in + 66 + r / 4 * 4);
    const std::uint64_t row = kIq3XxsGrid[in[2 + 2 * r]] | std::uint64_t{kIq3XxsGrid[in[3 + 2 * r]]} << 32;
    const float scale = d * (0.5F + number(static_cast<int>(rest >> 28))) * 0.5F;
    signed_row(row, even_signs(rest >> 7 * (r % 4) & 127), scale, y + 8 * r);
  }
}

// f16 d; u8 qs[64]; u8 qh[8], bit 8 of each index; u8 signs[32]; u8 scales[4], a nibble for 32 elements
inline void iq3_s(Bytes in, float* y) {
  const float d = f16(in);
  const auto half_row = [&](int h) { return std::uint64_t{kIq3SGrid[in[2 + h] | unsigned(bit(in + 66, h)) << 8]}; };
  for (int r = 0; r < 32; ++r) {
    const int scale = in[106 + r / 8] >> r / 4 % 2 * 4 & 15;
    signed_row(half_row(2 * r) | half_row(2 * r + 1) << 32, in[74 + r], d * number(1 + 2 * scale), y + 8 * r);
  }
}

// 8 elements of IQ1: a row of -1, 0 and 1, all moved by an eighth up or down.
inline void moved_row(std::uint64_t row, bool down, float scale, float* y) {
  for (int j = 0; j < 8; ++j)
    y[j] = scale * (number(static_cast<std::int8_t>(row >> 8 * j)) + (down ? -0.125F : 0.125F));
}

// f16 d; u8 qs[32]; u16 qh[8]: bits 8 to 10 of four indices, a scale of 3 bits, and on top whether to move down
inline void iq1_s(Bytes in, float* y) {
  const float d = f16(in);
  for (int r = 0; r < 32; ++r) {
    const std::uint32_t rest = u16(in + 34 + r / 4 * 2);
    const std::uint32_t index = in[2 + r] | (rest >> 3 * (r % 4) & 7) << 8;
    const float scale = d * number(static_cast<int>(2 * (rest >> 12 & 7) + 1));
    moved_row(kIq1SGrid[index], rest >> 15 != 0, scale, y + 8 * r);
  }
}

// u8 qs[32]; u8 qh[16]: for each index, 3 more bits and whether to move down; u16 scales[4]: each four scales of 3 bits
// for 16 elements, and a nibble of d, an f16
inline void iq1_m(Bytes in, float* y) {
  std::uint32_t d = 0;
  for (int s = 0; s < 4; ++s) d |= u16(in + 48 + 2 * s) >> 12 << 4 * s;
  for (int r = 0; r < 32; ++r) {
    const std::uint32_t rest = in[32 + r / 2] >> r % 2 * 4 & 15U;
    const std::uint32_t scale = u16(in + 48 + r / 8 * 2) >> r / 2 % 4 * 3 & 7;
    moved_row(kIq1SGrid[in[r] | (rest & 7) << 8], rest >> 3 != 0,
              float16{static_cast<std::uint16_t>(d)} * number(static_cast<int>(2 * scale + 1)), y + 8 * r);
  }
}

// f16 d; u8 qs[16]
inline void iq4_nl(Bytes in, float* y) {
  const float d = f16(in);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * number(kIq4Values[in[2 + j] & 15]);
    y[j + 16] = d * number(kIq4Values[in[2 + j] >> 4]);
  }
}

// f16 d; u16 scales_h; u8 scales_l[4]; u8 qs[128]: 8 times as IQ4_NL, with a scale of 4 and 2 bits, less 32
inline void iq4_xs(Bytes in, float* y) {
  const float d = f16(in);
  for (int i = 0; i < 256; ++i) {
    const int g = i / 32;
    const int scale = (in[4 + g / 2] >> g % 2 * 4 & 15) | static_cast<int>(u16(in + 2) >> 2 * g & 3) << 4;
    const std::uint8_t pair = in[8 + g * 16 + i % 16];
    y[i] = d * number(scale - 32) * number(kIq4Values[i % 32 < 16 ? pair & 15 : pair >> 4]);
  }
}

// Digit n of five ternary digits, the highest first: the byte is a fraction of 256, so multiplying by 3 brings the next
// digit over the point.
inline int trit(std::uint8_t byte, int n) {
  constexpr int kPowers[] = {1, 3, 9, 27, 81};
  const auto rest = static_cast<std::uint8_t>(byte * kPowers[n]);
  return rest * 3 >> 8;
}

// u8 qs[48]; u8 qh[4]; f16 d.
// 160 elements are the five digits of 32 bytes, 80 of the next 16 bytes, and 16 the first four of the last 4 bytes.
inline void tq1_0(Bytes in, float* y) {
  const float d = f16(in + 52);
  for (int i = 0; i < 160; ++i) *y++ = number(trit(in[i % 32], i / 32) - 1) * d;
  for (int i = 0; i < 80; ++i) *y++ = number(trit(in[32 + i % 16], i / 16) - 1) * d;
  for (int i = 0; i < 16; ++i) *y++ = number(trit(in[48 + i % 4], i / 4) - 1) * d;
}

// u8 qs[64]; f16 d. Each 32 of 128 elements are two bits of the same 32 bytes.
inline void tq2_0(Bytes in, float* y) {
  const float d = f16(in + 64);
  for (int i = 0; i < 256; ++i) y[i] = number((in[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) - 1) * d;
}

// u8 e; u8 qs[16]
inline void mxfp4(Bytes in, float* y) {
  const float d = half_e8m0(in[0]);
  for (int j = 0; j < 16; ++j) {
    y[j] = number(kFp4Values[in[1 + j] & 15]) * d;
    y[j + 16] = number(kFp4Values[in[1 + j] >> 4]) * d;
  }
}

// u8 d[4]; u8 qs[32]: for each 16 elements, 8 low nibbles and then 8 high ones
inline void nvfp4(Bytes in, float* y) {
  for (int i = 0; i < 64; ++i) {
    const std::uint8_t pair = in[4 + i / 16 * 8 + i % 8];
    y[i] = number(kFp4Values[i % 16 < 8 ? pair & 15 : pair >> 4]) * half_ue4m3(in[i / 16]);
  }
}

// f16 d; u8 qs[16], a bit an element
inline void q1_0(Bytes in, float* y) {
  const float d = f16(in);
  for (int i = 0; i < 128; ++i) y[i] = bit(in + 2, i) != 0 ? d : -d;
}

// f16 d; u8 qs[16], two bits an element
inline void q2_0(Bytes in, float* y) {
  const float d = f16(in);
  for (int i = 0; i < 64; ++i) y[i] = number((in[2 + i / 4] >> i % 4 * 2 & 3) - 1) * d;
}

using DecodeBlock = void (*)(Bytes, float*);

// Null if the type is not a block type of ggml.
inline DecodeBlock decoder(DType type) {
  switch (type) {
    case DType::q4_0: return q4_0;
    case DType::q4_1: return q4_1;
    case DType::q5_0: return q5_0;
    case DType::q5_1: return q5_1;
    case DType::q8_0: return q8_0;
    case DType::q8_1: return q8_1;
    case DType::q2_k: return q2_k;
    case DType::q3_k: return q3_k;
    case DType::q4_k: return q4_k;
    case DType::q5_k: return q5_k;
    case DType::q6_k: return q6_k;
    case DType::q8_k: return q8_k;
    case DType::iq2_xxs: return iq2_xxs;
    case DType::iq2_xs: return iq2_xs;
    case DType::iq2_s: return iq2_s;
    case DType::iq3_xxs: return iq3_xxs;
    case DType::iq3_s: return iq3_s;
    case DType::iq1_s: return iq1_s;
    case DType::iq1_m: return iq1_m;
    case DType::iq4_nl: return iq4_nl;
    case DType::iq4_xs: return iq4_xs;
    case DType::tq1_0: return tq1_0;
    case DType::tq2_0: return tq2_0;
    case DType::mxfp4: return mxfp4;
    case DType::nvfp4: return nvfp4;
    case DType::q1_0: return q1_0;
    case DType::q2_0: return q2_0;
    default: return nullptr;
  }
}

}  // namespace ballast::kernels::plain
