// How ggml turns floats into its block types, one function a type: each turns the finite elements of one block into its
// bytes, in plain loops. The block types whose scales are searched for are in encode_plain_k.hpp.
//
// This is the reference that the vector code is tested against and measured by, and the code that runs if a processor
// has no vectors. The order of every operation matters, because each one rounds. The structure of the blocks is
// explained in decode_plain.hpp.
#pragma once

#include <ballast/dtype.hpp>

#include "kernels/ggml/encode_parts.hpp"
#include "kernels/ggml/encode_plain_grid.hpp"
#include "kernels/ggml/encode_plain_k.hpp"
#include "kernels/ggml/encode_plain_ternary.hpp"
#include "kernels/ggml/encode_plain_weighted.hpp"

namespace ballast::kernels::plain {

inline float largest_magnitude(const float* x, int count) {
  float most = 0;
  for (int j = 0; j < count; ++j) most = std::max(most, std::fabs(x[j]));
  return most;
}

// Cuts and does not round; the caller has added a half.
inline std::uint8_t cut(float value, float most) {
  return value > 0 ? static_cast<std::uint8_t>(std::min(value, most)) : std::uint8_t{0};
}

// Q4_0 and Q5_0: the number farthest from zero becomes the lowest code, because there is one more code below zero than
// above.
template <int kCodes>
inline float codes_around_zero(const float* x, std::uint8_t* codes) {
  const float d = farthest_from_zero(x, 32) / -(kCodes / 2), id = inverse(d);
  for (int j = 0; j < 32; ++j) codes[j] = cut(x[j] * id + (kCodes / 2 + 0.5F), kCodes - 1);
  return d;
}

inline void to_q4_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[32];
  put_f16(codes_around_zero<16>(x, codes), out);
  pack_nibbles<16>(codes, out + 2);
}

inline void to_q5_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[32];
  put_f16(codes_around_zero<32>(x, codes), out);
  put_u32(fifth_bits(codes), out + 2);
  pack_nibbles<16>(codes, out + 6);
}

// Q4_1 and Q5_1: the codes reach from the smallest number to the largest.
template <int kCodes>
inline void codes_above_min(const float* x, std::uint8_t* codes, std::uint8_t* out) {
  float min = x[0], max = x[0];
  for (int j = 1; j < 32; ++j) {
    if (x[j] < min) min = x[j];
    if (x[j] > max) max = x[j];
  }
  const float d = (max - min) / (kCodes - 1), id = inverse(d);
  put_f16(d, out);
  put_f16(min, out + 2);
  for (int j = 0; j < 32; ++j) codes[j] = cut((x[j] - min) * id + 0.5F, kCodes - 1);
}

inline void to_q4_1(const float* x, std::uint8_t* out) {
  std::uint8_t codes[32];
  codes_above_min<16>(x, codes, out);
  pack_nibbles<16>(codes, out + 4);
}

inline void to_q5_1(const float* x, std::uint8_t* out) {
  std::uint8_t codes[32];
  codes_above_min<32>(x, codes, out);
  put_u32(fifth_bits(codes), out + 4);
  pack_nibbles<16>(codes, out + 8);
}

inline void to_q8_0(const float* x, std::uint8_t* out) {
  const float d = largest_magnitude(x, 32) / 127, id = inverse(d);
  put_f16(d, out);
  for (int j = 0; j < 32; ++j) out[2 + j] = static_cast<std::uint8_t>(static_cast<int>(std::round(x[j] * id)));
}

// f32 d, i8 qs[256] and the sum of each 16 of them
inline void put_q8_k_sums(std::uint8_t* out) {
  for (int g = 0; g < 16; ++g) {
    int sum = 0;
    for (int j = 0; j < 16; ++j) sum += static_cast<std::int8_t>(out[4 + 16 * g + j]);
    put_u16(static_cast<std::uint32_t>(sum), out + 260 + 2 * g);
  }
}

inline void to_q8_k(const float* x, std::uint8_t* out) {
  const float farthest = farthest_from_zero(x, 256);
  if (farthest == 0) return static_cast<void>(std::memset(out, 0, 292));
  const float iscale = -127 / farthest;
  put_u32(std::bit_cast<std::uint32_t>(1 / iscale), out);
  for (int j = 0; j < 256; ++j) out[4 + j] = static_cast<std::uint8_t>(std::min(nearest(iscale * x[j]), 127));
  put_q8_k_sums(out);
}

// TQ1_0, TQ2_0 and Q2_0: minus one, zero and one times the largest magnitude become 0, 1 and 2. (Q2_0 never uses its
// fourth code, which means twice the magnitude.)
template <int kCount>
inline float ternary_codes(const float* x, std::uint8_t* codes) {
  const float d = largest_magnitude(x, kCount), id = inverse(d);
  for (int j = 0; j < kCount; ++j) codes[j] = static_cast<std::uint8_t>(static_cast<int>(std::round(x[j] * id)) + 1);
  return d;
}

inline void to_tq1_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[256];
  put_f16(ternary_codes<256>(x, codes), out + 52);
  pack_tq1_0(codes, out);
}

inline void to_tq2_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[256];
  put_f16(ternary_codes<256>(x, codes), out + 64);
  pack_tq2_0(codes, out);
}

inline void to_q2_0(const float* x, std::uint8_t* out) {
  std::uint8_t codes[64];
  put_f16(ternary_codes<64>(x, codes), out);
  pack_q2_0(codes, out + 2);
}

// The signs, and the mean of the magnitudes.
inline void to_q1_0(const float* x, std::uint8_t* out) {
  float sum = 0;
  for (int j = 0; j < 128; ++j) sum += std::fabs(x[j]);
  put_f16(sum / 128, out);
  std::memset(out + 2, 0, 16);
  for (int j = 0; j < 128; ++j) out[2 + j / 8] = static_cast<std::uint8_t>(out[2 + j / 8] | (x[j] >= 0) << j % 8);
}

// The E2M1 number nearest to x/d; the lower one if two are equally near. d is half a scale because the table holds
// doubled values. The distances are rounded, so far outside the table they are all the same and the code is zero.
inline std::uint8_t fp4_code(float x, float d) {
  const float magnitude = std::fabs(x);
  float least = magnitude;
  int code = 0;
  for (int i = 1; i < 8; ++i) {
    const float distance = std::fabs(static_cast<float>(kFp4Values[static_cast<std::size_t>(i)]) * d - magnitude);
    if (distance < least) {
      least = distance;
      code = i;
    }
  }
  return static_cast<std::uint8_t>(x < 0 && code > 0 ? code | 8 : code);
}

inline void to_mxfp4(const float* x, std::uint8_t* out) {
  std::uint8_t codes[32];
  out[0] = e8m0_code(largest_magnitude(x, 32));
  for (int j = 0; j < 32; ++j) codes[j] = fp4_code(x[j], half_e8m0(out[0]));
  pack_nibbles<16>(codes, out + 1);
}

inline void to_nvfp4(const float* x, std::uint8_t* out) {
  std::uint8_t codes[16];
  for (int g = 0; g < 4; ++g, x += 16) {
    out[g] = ue4m3_code(largest_magnitude(x, 16) / 6);
    for (int j = 0; j < 16; ++j) codes[j] = fp4_code(x[j], half_ue4m3(out[g]));
    pack_nibbles<8>(codes, out + 4 + 8 * g);
  }
}

using EncodeBlock = void (*)(const float*, std::uint8_t*);
using EncodeWeightedBlock = void (*)(const float*, const float*, std::uint8_t*);
using EncodeWeightedBlocks = void (*)(const float*, const float*, std::size_t, std::uint8_t*);

// A type of 256 elements that has weights even if none are given: the squares.
template <EncodeWeightedBlock kEncode>
inline void encode_by_squares(const float* x, std::uint8_t* out) {
  kEncode(x, SquareWeights<256>(x).weights, out);
}

// IQ2_S: the squares and half of their mean.
inline void to_iq2_s_by_squares(const float* x, std::uint8_t* out) {
  SquareWeights<256> squares(x);
  float sum = 0;
  for (const float square : squares.weights) sum += square;
  for (float& weight : squares.weights) weight = 0.25F * (2 * sum / 256) + weight;
  to_iq2_s<PlainGridSearch>(x, squares.weights, out);
}

// Null if the type cannot be encoded without an importance matrix.
inline EncodeBlock encoder(DType type) {
  switch (type) {
    case DType::q4_0: return to_q4_0;
    case DType::q4_1: return to_q4_1;
    case DType::q5_0: return to_q5_0;
    case DType::q5_1: return to_q5_1;
    case DType::q8_0: return to_q8_0;
    case DType::q8_k: return to_q8_k;
    case DType::q2_k: return to_q2_k<PlainSearch>;
    case DType::q3_k: return to_q3_k<PlainSearch>;
    case DType::q4_k: return to_q4_k<PlainSearch>;
    case DType::q5_k: return to_q5_k<PlainSearch>;
    case DType::q6_k: return to_q6_k<PlainSearch>;
    case DType::iq4_nl: return to_iq4_nl;
    case DType::iq4_xs: return to_iq4_xs<PlainSearch>;
    case DType::tq1_0: return to_tq1_0;
    case DType::tq2_0: return to_tq2_0;
    case DType::mxfp4: return to_mxfp4;
    case DType::nvfp4: return to_nvfp4;
    case DType::q1_0: return to_q1_0;
    case DType::q2_0: return to_q2_0;
    case DType::iq2_s: return to_iq2_s_by_squares;
    case DType::iq3_xxs: return encode_by_squares<to_iq3_xxs<PlainGridSearch> >;
    case DType::iq3_s: return encode_by_squares<to_iq3_s<PlainGridSearch> >;
    case DType::iq1_m: return encode_by_squares<to_iq1_m<PlainTernarySearch> >;
    default: return nullptr;
  }
}

template <EncodeWeightedBlock kEncode, int kElements, int kBytes>
inline void encode_each_weighted(const float* x, const float* weights, std::size_t count, std::uint8_t* out) {
  for (; count > 0; --count, x += kElements, weights += kElements, out += kBytes) kEncode(x, weights, out);
}

// Encodes elements that have weights. Null if the type takes none.
inline EncodeWeightedBlocks weighted_encoder(DType type) {
  using Search = PlainWeightedSearch;
  switch (type) {
    case DType::q4_0: return encode_weighted_around_zero<Search, 8>;
    case DType::q5_0: return encode_weighted_around_zero<Search, 16>;
    case DType::q4_1: return encode_weighted_above_min<Search, 15>;
    case DType::q5_1: return encode_weighted_above_min<Search, 31>;
    case DType::q2_k: return encode_weighted_q2_k<Search>;
    case DType::q3_k: return encode_weighted_q3_k<Search>;
    case DType::q4_k: return encode_weighted_q4_k<Search>;
    case DType::q5_k: return encode_weighted_q5_k<Search>;
    case DType::q6_k: return encode_each_weighted<to_q6_k_with<Search>, 256, 210>;
    case DType::iq4_nl: return encode_each_weighted<to_iq4_nl_with, 32, 18>;
    case DType::iq4_xs: return encode_each_weighted<to_iq4_xs_with<Search>, 256, 136>;
    case DType::iq2_xxs: return encode_each_weighted<to_iq2_xxs<PlainGridSearch>, 256, 66>;
    case DType::iq2_xs: return encode_each_weighted<to_iq2_xs<PlainGridSearch>, 256, 74>;
    case DType::iq2_s: return encode_each_weighted<to_iq2_s<PlainGridSearch>, 256, 82>;
    case DType::iq3_xxs: return encode_each_weighted<to_iq3_xxs<PlainGridSearch>, 256, 98>;
    case DType::iq3_s: return encode_each_weighted<to_iq3_s<PlainGridSearch>, 256, 110>;
    case DType::iq1_s: return encode_each_weighted<to_iq1_s<PlainTernarySearch>, 256, 50>;
    case DType::iq1_m: return encode_each_weighted<to_iq1_m<PlainTernarySearch>, 256, 56>;
    default: return nullptr;
  }
}

}  // namespace ballast::kernels::plain
