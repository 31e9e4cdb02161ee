// The block types whose scales are searched for, Q2_K to Q6_K, IQ4_NL and IQ4_XS: everything except the searches. The
// searches take all the time and are a parameter, so that plain and vector code differ in nothing else.
//
// These types have in common that a block is cut into groups with a scale each, that the scales are then rounded to a
// few bits, and that the codes are chosen again for the rounded scales. If a rounded scale is zero, the codes mean
// nothing, but ggml keeps the codes of the search, and so do we.
//
// A Search has, for the 256 elements of a block:
//   fit_from_min<Fit>(x, weights, fits)  the scale and the min of every group (Q2_K, Q4_K, Q5_K)
//   fit_around_zero(x, weights, fits)    the scale of every group of 16, codes -32 to 31 (Q6_K)
//   refine_around_zero(x, fits, codes)   the same, with codes -4 to 3 that no scale gives (Q3_K)
//   fit_iq4(x, weights, scales)          the scale of every group of 32 (IQ4_XS, and IQ4_NL a group at a time)
//   divided<low, high>, multiplied<low, high>, iq4_codes: the codes of one group for a given scale
// The weights of the elements are null if there is no importance; then each type has its own.
#pragma once

#include "kernels/ggml/decode_plain.hpp"
#include "kernels/ggml/encode_parts.hpp"

namespace ballast::kernels::plain {

struct Fits {
  alignas(64) float scale[16];
  alignas(64) float min[16];
  alignas(64) float weight[16];  // of all elements of a group
  // The codes of the search: nearest(code_scale * (x - code_base)), or all zero if code_scale is zero.
  alignas(64) float code_scale[16];
  alignas(64) float code_base[16];
};

struct ScaleFit {
  float scale = 0, code_scale = 0;  // as in Fits
};

// How the scales of a type with mins are searched: the codes are 0 to kMost, the first scale would suit kMost + kFirst,
// and each of kSteps steps adds kStep.
struct Q2Fit {
  static constexpr int kGroup = 16, kMost = 3, kSteps = 15;
  static constexpr float kFirst = -0.5F, kStep = 0.1F;
  static constexpr bool kAbsolute = true;  // errors are weighted by magnitude, and not squared
  static constexpr bool kGiven = false;    // the weights are not given
};
struct Q4Fit {
  static constexpr int kGroup = 32, kMost = 15, kSteps = 20;
  static constexpr float kFirst = -1, kStep = 0.1F;
  static constexpr bool kAbsolute = false, kGiven = false;
};
struct Q5Fit {
  static constexpr int kGroup = 32, kMost = 31, kSteps = 15;
  static constexpr float kFirst = -0.5F, kStep = 0.1F;
  static constexpr bool kAbsolute = false, kGiven = false;
};

// The same with weights that are given.
template <int kGroupElements, int kMostCode>
struct GivenFit {
  static constexpr int kGroup = kGroupElements, kMost = kMostCode, kSteps = 36;
  static constexpr float kFirst = -0.9F, kStep = 0.05F;
  static constexpr bool kAbsolute = false, kGiven = true;
};

// A group whose magnitudes are all below this counts as zeros.
constexpr float kSmallestMagnitude = 1e-15F;

inline float largest(const float* values, int count) {
  float most = 0;
  for (int j = 0; j < count; ++j) most = values[j] > most ? values[j] : most;
  return most;
}

// Sixteen scales and mins of 4 bits. A negative scale spills into the bits of the min, as in ggml.
inline void put_q2_scales(const Fits& fits, std::uint8_t* out) {
  const float scale = largest(fits.scale, 16), min = largest(fits.min, 16);
  const float to_scale = scale > 0 ? 15 / scale : 0, to_min = min > 0 ? 15 / min : 0;
  for (int g = 0; g < 16; ++g)
    out[g] = static_cast<std::uint8_t>(nearest(to_scale * fits.scale[g]) | nearest(to_min * fits.min[g]) * 16);
  put_f16(scale / 15, out + 80);
  put_f16(min / 15, out + 82);
}

// Eight scales and mins of 6 bits. A negative scale becomes the largest one, as in ggml.
inline void put_q4_scales(const Fits& fits, std::uint8_t* out) {
  const float scale = largest(fits.scale, 8), min = largest(fits.min, 8);
  const float to_scale = scale > 0 ? 63 / scale : 0, to_min = min > 0 ? 63 / min : 0;
  const auto six_bits = [](float value) { return std::min(nearest(value) & 255, 63); };
  put_f16(scale / 63, out);
  put_f16(min / 63, out + 2);
  for (int g = 0; g < 4; ++g) {
    const int scale_a = six_bits(to_scale * fits.scale[g]), scale_b = six_bits(to_scale * fits.scale[g + 4]);
    const int min_a = six_bits(to_min * fits.min[g]), min_b = six_bits(to_min * fits.min[g + 4]);
    out[4 + g] = static_cast<std::uint8_t>(scale_a | scale_b >> 4 << 6);
    out[8 + g] = static_cast<std::uint8_t>(min_a | min_b >> 4 << 6);
    out[12 + g] = static_cast<std::uint8_t>((scale_b & 15) | min_b << 4);
  }
}

template <class Search, class Fit>
inline void codes_from_min(const float* x, const Fits& fits, int g, float d, float min, std::uint8_t* codes) {
  x += g * Fit::kGroup;
  codes += g * Fit::kGroup;
  if (d != 0) return Search::template divided<0, Fit::kMost>(x, Fit::kGroup, min, d, codes);
  Search::template multiplied<0, Fit::kMost>(x, Fit::kGroup, fits.code_base[g], fits.code_scale[g], codes);
}

// The codes of Q2_K for the scales that are already there.
template <class Search>
inline void put_q2_codes(const float* x, const Fits& fits, std::uint8_t* out) {
  std::uint8_t codes[256];
  const float d = f16(out + 80), dmin = f16(out + 82);
  for (int g = 0; g < 16; ++g)
    codes_from_min<Search, Q2Fit>(x, fits, g, d * number(low(out[g])), dmin * number(high(out[g])), codes);
  pack_pairs(codes, out + 16);
  pack_pairs(codes + 128, out + 48);
}

template <class Search>
inline void to_q2_k(const float* x, std::uint8_t* out) {
  Fits fits;
  Search::template fit_from_min<Q2Fit>(x, nullptr, fits);
  put_q2_scales(fits, out);
  put_q2_codes<Search>(x, fits, out);
}

template <class Search, class Fit>
inline void codes_for_q4_scales(const float* x, const Fits& fits, const std::uint8_t* out, std::uint8_t* codes) {
  const float d = f16(out), dmin = f16(out + 2);
  for (int g = 0; g < 8; ++g) {
    const auto [scale, min] = scale_min(out + 4, g);
    codes_from_min<Search, Fit>(x, fits, g, d * number(scale), dmin * number(min), codes);
  }
}

// The codes of Q4_K and Q5_K for the scales that are already there.
template <class Search>
inline void put_q4_codes(const float* x, const Fits& fits, std::uint8_t* out) {
  std::uint8_t codes[256];
  codes_for_q4_scales<Search, Q4Fit>(x, fits, out, codes);
  for (int i = 0; i < 4; ++i) pack_nibbles<32>(codes + 64 * i, out + 16 + 32 * i);
}

template <class Search>
inline void to_q4_k(const float* x, std::uint8_t* out) {
  Fits fits;
  Search::template fit_from_min<Q4Fit>(x, nullptr, fits);
  put_q4_scales(fits, out);
  put_q4_codes<Search>(x, fits, out);
}

template <class Search>
inline void put_q5_codes(const float* x, const Fits& fits, std::uint8_t* out) {
  std::uint8_t codes[256];
  codes_for_q4_scales<Search, Q5Fit>(x, fits, out, codes);
  for (int j = 0; j < 32; ++j) {
    int bits = 0;
    for (int g = 0; g < 8; ++g) bits |= codes[32 * g + j] >> 4 << g;
    out[16 + j] = static_cast<std::uint8_t>(bits);
  }
  for (int i = 0; i < 4; ++i) pack_nibbles<32>(codes + 64 * i, out + 48 + 32 * i);
}

template <class Search>
inline void to_q5_k(const float* x, std::uint8_t* out) {
  Fits fits;
  Search::template fit_from_min<Q5Fit>(x, nullptr, fits);
  put_q4_scales(fits, out);
  put_q5_codes<Search>(x, fits, out);
}

// Sixteen scales of 6 bits.
inline void pack_q3_scales(const std::uint8_t* codes, std::uint8_t* out) {
  std::memset(out, 0, 12);
  for (int g = 0; g < 16; ++g) {
    out[g % 8] = static_cast<std::uint8_t>(out[g % 8] | (codes[g] & 15) << g / 8 * 4);
    out[8 + g % 4] = static_cast<std::uint8_t>(out[8 + g % 4] | codes[g] >> 4 << g / 4 * 2);
  }
}

// The scale of the largest magnitude becomes -32.
inline void put_q3_scales(const Fits& fits, std::uint8_t* out) {
  const float farthest = farthest_from_zero(fits.scale, 16), iscale = farthest != 0 ? -32 / farthest : 0;
  std::uint8_t codes[16] = {};
  put_f16(farthest != 0 ? 1 / iscale : 0, out + 108);
  for (int g = 0; g < 16 && farthest != 0; ++g) {
    const int code = std::clamp<int>(static_cast<std::int8_t>(nearest(iscale * fits.scale[g])), -32, 31) + 32;
    codes[g] = static_cast<std::uint8_t>(code);
  }
  pack_q3_scales(codes, out + 96);
}

inline int q3_scale(const std::uint8_t* scales, int g) {
  return ((scales[g % 8] >> g / 8 * 4 & 15) | (scales[8 + g % 4] >> g / 4 * 2 & 3) << 4) - 32;
}

// The codes of Q3_K for the scales that are already there; `codes` are those of the search.
template <class Search>
inline void put_q3_codes(const float* x, std::uint8_t* codes, std::uint8_t* out) {
  for (int g = 0; g < 16; ++g) {
    const float d = f16(out + 108) * number(q3_scale(out + 96, g));
    if (d != 0) Search::template divided<-4, 3>(x + 16 * g, 16, 0, d, codes + 16 * g);
  }
  for (int j = 0; j < 32; ++j) {
    int bits = 0;
    for (int i = 0; i < 8; ++i) bits |= codes[32 * i + j] >> 2 << i;
    out[j] = static_cast<std::uint8_t>(bits);
  }
  pack_pairs(codes, out + 32);
  pack_pairs(codes + 128, out + 64);
}

template <class Search>
inline void to_q3_k(const float* x, std::uint8_t* out) {
  Fits fits;
  std::uint8_t codes[256];
  Search::refine_around_zero(x, fits, codes);
  put_q3_scales(fits, out);
  put_q3_codes<Search>(x, codes, out);
}

template <class Search>
inline void q6_codes(const float* x, const Fits& fits, int g, float d, std::uint8_t* codes) {
  if (d != 0) return Search::template divided<-32, 31>(x, 16, 0, d, codes);
  if (fits.code_scale[g] == 0) return static_cast<void>(std::memset(codes, 0, 16));
  Search::template multiplied<-32, 31>(x, 16, 0, fits.code_scale[g], codes);
}

template <class Search>
inline void to_q6_k_with(const float* x, const float* weights, std::uint8_t* out) {
  Fits fits;
  std::uint8_t codes[256];
  Search::fit_around_zero(x, weights, fits);
  const float farthest = farthest_from_zero(fits.scale, 16), iscale = -128 / farthest;
  if (std::fabs(farthest) < kSmallestMagnitude) return static_cast<void>(std::memset(out, 0, 210));
  put_f16(1 / iscale, out + 208);
  for (int g = 0; g < 16; ++g) {
    out[192 + g] = static_cast<std::uint8_t>(std::min(nearest(iscale * fits.scale[g]), 127));
    const float d = f16(out + 208) * number(static_cast<std::int8_t>(out[192 + g]));
    q6_codes<Search>(x + 16 * g, fits, g, d, codes + 16 * g);
  }
  for (int i = 0; i < 2; ++i) {
    pack_nibbles<64>(codes + 128 * i, out + 64 * i);
    std::uint8_t tops[128];
    for (int j = 0; j < 128; ++j) tops[j] = codes[128 * i + j] >> 4;
    pack_pairs(tops, out + 128 + 32 * i);
  }
}

template <class Search>
inline void to_q6_k(const float* x, std::uint8_t* out) {
  to_q6_k_with<Search>(x, nullptr, out);
}

template <class Search>
inline void put_iq4_nl(const float* x, float scale, std::uint8_t* out) {
  std::uint8_t codes[32];
  put_f16(scale, out);
  Search::iq4_codes(x, scale != 0 ? 1 / scale : 0, codes);
  pack_nibbles<16>(codes, out + 2);
}

// Eight scales of 6 bits; the scale of the largest magnitude becomes -32.
template <class Search>
inline void to_iq4_xs_with(const float* x, const float* weights, std::uint8_t* out) {
  alignas(64) float scales[8];
  std::uint8_t codes[32];
  Search::fit_iq4(x, weights, scales);
  const float d = -farthest_from_zero(scales, 8) / 32, id = d != 0 ? 1 / d : 0;
  put_f16(d, out);
  std::memset(out + 2, 0, 6);
  std::uint32_t tops = 0;
  for (int g = 0; g < 8; ++g) {
    const int scale = std::clamp(nearest(id * scales[g]), -32, 31);
    const float scaled = d * number(scale);
    Search::iq4_codes(x + 32 * g, scaled != 0 ? 1 / scaled : 0, codes);
    pack_nibbles<16>(codes, out + 8 + 16 * g);
    out[4 + g / 2] = static_cast<std::uint8_t>(out[4 + g / 2] | ((scale + 32) & 15) << g % 2 * 4);
    tops |= static_cast<std::uint32_t>(scale + 32) >> 4 << 2 * g;
  }
  put_u16(tops, out + 2);
}

template <class Search>
inline void to_iq4_xs(const float* x, std::uint8_t* out) {
  to_iq4_xs_with<Search>(x, nullptr, out);
}

}  // namespace ballast::kernels::plain
