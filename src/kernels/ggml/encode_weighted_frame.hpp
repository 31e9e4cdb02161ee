// Q4_0 to Q5_K as ggml encodes them if the elements have weights: other searches than without, but the same blocks.
// Everything except the searches, which are a parameter, as in encode_frame.hpp.
//
// Scales and mins are fitted too, with the weights of their groups. Vectors have the scales of several blocks at once,
// so blocks are encoded in batches. A Search has, besides what encode_frame.hpp wants:
//   kBatch                                             how many blocks are in a batch
//   fit_around_zero_by_4(x, weights, fits)             the scale of every group of 16 of a block, codes -4 to 3
//   fit_positive<count, most>(values, weights, found)  scales or mins of a batch, codes 0 to most
//   fit_scales(values, weights, found)                 scales of a batch, 16 each, codes -32 to 31
//   fit_32s<most>(x, weights, found)                   a batch of blocks of 32 elements, codes -most to most - 1
//   fit_32s_from_min<Fit>(x, weights, fits)            a batch of blocks of 32 elements; block i is group i of the fits
// Scales, mins and weights of a batch are members of Fits that lie one behind the other.
#pragma once

#include "kernels/ggml/encode_frame.hpp"

namespace ballast::kernels::plain {

// Codes of a byte, which a negative number wraps to, as in ggml.
struct PositiveFit {
  float scale = 0;
  std::uint8_t codes[16] = {};
};

// Calls put(x, fits, scales, mins, out) for each block.
template <class Search, class Fit, class Put>
inline void encode_from_min_batches(const float* x, const float* weights, std::size_t count, std::size_t bytes,
                                    std::uint8_t* out, Put put) {
  constexpr int kGroups = 256 / Fit::kGroup, kMostScale = Fit::kGroup == 16 ? 15 : 63;
  while (count > 0) {
    Fits fits[Search::kBatch] = {};
    PositiveFit scales[Search::kBatch], mins[Search::kBatch];
    const std::size_t some = std::min<std::size_t>(count, Search::kBatch);
    for (std::size_t i = 0; i < some; ++i) Search::template fit_from_min<Fit>(x + 256 * i, weights + 256 * i, fits[i]);
    Search::template fit_positive<kGroups, kMostScale>(fits->scale, fits->weight, scales);
    Search::template fit_positive<kGroups, kMostScale>(fits->min, fits->weight, mins);
    for (std::size_t i = 0; i < some; ++i, x += 256, weights += 256, out += bytes)
      put(x, fits[i], scales[i], mins[i], out);
    count -= some;
  }
}

template <class Search>
inline void encode_weighted_q2_k(const float* x, const float* weights, std::size_t count, std::uint8_t* out) {
  const auto put = [](const float* from, const Fits& fits, const PositiveFit& scales, const PositiveFit& mins,
                      std::uint8_t* block) {
    put_f16(scales.scale, block + 80);
    put_f16(mins.scale, block + 82);
    for (int g = 0; g < 16; ++g) block[g] = static_cast<std::uint8_t>(scales.codes[g] | mins.codes[g] << 4);
    put_q2_codes<Search>(from, fits, block);
  };
  encode_from_min_batches<Search, GivenFit<16, 3> >(x, weights, count, 84, out, put);
}

// Eight scales and mins of 6 bits. Q4_K does not limit them, so that a negative one spills into other bits.
inline void put_q4_scales(const PositiveFit& scales, const PositiveFit& mins, int most, std::uint8_t* out) {
  put_f16(scales.scale, out);
  put_f16(mins.scale, out + 2);
  for (int g = 0; g < 4; ++g) {
    const int scale_a = std::min<int>(scales.codes[g], most), scale_b = std::min<int>(scales.codes[g + 4], most);
    const int min_a = std::min<int>(mins.codes[g], most), min_b = std::min<int>(mins.codes[g + 4], most);
    out[4 + g] = static_cast<std::uint8_t>(scale_a | scale_b >> 4 << 6);
    out[8 + g] = static_cast<std::uint8_t>(min_a | min_b >> 4 << 6);
    out[12 + g] = static_cast<std::uint8_t>((scale_b & 15) | min_b << 4);
  }
}

template <class Search>
inline void encode_weighted_q4_k(const float* x, const float* weights, std::size_t count, std::uint8_t* out) {
  const auto put = [](const float* from, const Fits& fits, const PositiveFit& scales, const PositiveFit& mins,
                      std::uint8_t* block) {
    put_q4_scales(scales, mins, 255, block);
    put_q4_codes<Search>(from, fits, block);
  };
  encode_from_min_batches<Search, GivenFit<32, 15> >(x, weights, count, 144, out, put);
}

template <class Search>
inline void encode_weighted_q5_k(const float* x, const float* weights, std::size_t count, std::uint8_t* out) {
  const auto put = [](const float* from, const Fits& fits, const PositiveFit& scales, const PositiveFit& mins,
                      std::uint8_t* block) {
    put_q4_scales(scales, mins, 63, block);
    put_q5_codes<Search>(from, fits, block);
  };
  encode_from_min_batches<Search, GivenFit<32, 31> >(x, weights, count, 176, out, put);
}

// The codes of the search. They are zero, which means the lowest number, if all numbers are.
template <class Search, int kMost>
inline void searched_codes(const float* x, int count, bool is_zero, float code_scale, std::uint8_t* codes) {
  if (is_zero) return static_cast<void>(std::memset(codes, 0, static_cast<std::size_t>(count)));
  Search::template multiplied<-kMost, kMost - 1>(x, count, 0, code_scale, codes);
}

template <class Search>
inline void encode_weighted_q3_k(const float* x, const float* weights, std::size_t count, std::uint8_t* out) {
  while (count > 0) {
    Fits fits[Search::kBatch] = {};
    ScaleFit scales[Search::kBatch];
    const std::size_t some = std::min<std::size_t>(count, Search::kBatch);
    for (std::size_t i = 0; i < some; ++i) Search::fit_around_zero_by_4(x + 256 * i, weights + 256 * i, fits[i]);
    Search::fit_scales(fits->scale, fits->weight, scales);
    for (std::size_t i = 0; i < some; ++i, x += 256, weights += 256, out += 110) {
      std::uint8_t codes[256], scale_codes[16];
      const bool is_zero = std::fabs(farthest_from_zero(fits[i].scale, 16)) < kSmallestMagnitude;
      searched_codes<Search, 32>(fits[i].scale, 16, is_zero, scales[i].code_scale, scale_codes);
      pack_q3_scales(scale_codes, out + 96);
      put_f16(scales[i].scale, out + 108);
      for (int g = 0; g < 16; ++g)
        searched_codes<Search, 4>(x + 16 * g, 16, fits[i].code_scale[g] == 0, fits[i].code_scale[g], codes + 16 * g);
      put_q3_codes<Search>(x, codes, out);
    }
    count -= some;
  }
}

// Q4_0 and Q5_0
template <class Search, int kMost>
inline void encode_weighted_around_zero(const float* x, const float* weights, std::size_t count, std::uint8_t* out) {
  for (; count >= Search::kBatch; count -= Search::kBatch, weights += 32 * Search::kBatch) {
    ScaleFit found[Search::kBatch];
    Search::template fit_32s<kMost>(x, weights, found);
    for (std::size_t i = 0; i < Search::kBatch; ++i, x += 32) {
      std::uint8_t codes[32];
      put_f16(found[i].scale, out);
      searched_codes<Search, kMost>(x, 32, found[i].code_scale == 0, found[i].code_scale, codes);
      if constexpr (kMost == 16) put_u32(fifth_bits(codes), out + 2);
      pack_nibbles<16>(codes, out + (kMost == 16 ? 6 : 2));
      out += kMost == 16 ? 22 : 18;
    }
  }
}

// Q4_1 and Q5_1
template <class Search, int kMost>
inline void encode_weighted_above_min(const float* x, const float* weights, std::size_t count, std::uint8_t* out) {
  for (; count >= Search::kBatch; count -= Search::kBatch, weights += 32 * Search::kBatch) {
    Fits fits;
    Search::template fit_32s_from_min<GivenFit<32, kMost> >(x, weights, fits);
    for (std::size_t i = 0; i < Search::kBatch; ++i, x += 32) {
      std::uint8_t codes[32];
      put_f16(fits.scale[i], out);
      put_f16(-fits.min[i], out + 2);
      Search::template multiplied<0, kMost>(x, 32, fits.code_base[i], fits.code_scale[i], codes);
      if constexpr (kMost == 31) put_u32(fifth_bits(codes), out + 4);
      pack_nibbles<16>(codes, out + (kMost == 31 ? 8 : 4));
      out += kMost == 31 ? 24 : 20;
    }
  }
}

}  // namespace ballast::kernels::plain
