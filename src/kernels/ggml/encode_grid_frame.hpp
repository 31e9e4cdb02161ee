// The IQ types of two and three bits: everything except the search for scales and rows of the grid, which is a
// parameter, as in encode_frame.hpp.
//
// A block of 256 elements is cut into groups of 16 or 32 with a scale each, and a group into rows of 8 or 4 elements.
// The magnitudes of a row, divided by the scale, become a row of the grid; the integers of a grid count as 1, 3, 5 and
// so on here, whatever the decoder takes them for. The signs are stored elsewhere.
//
// A Search has, for the elements of a block:
//   take_magnitudes(x, weights, magnitudes, signs)  a bit for each minus
//   fit_grid<Fit>(grid, magnitudes, fits)           the scale and the rows of every group
#pragma once

#include "kernels/ggml/encode_parts.hpp"
#include "kernels/ggml/grids.hpp"

namespace ballast::kernels::plain {

// Which rows are chosen again when the scale of a group is known.
enum class Again : std::uint8_t { all, missing, all_if_missing };  // missing: that the grid did not have

// How the scale of a group is searched: the largest magnitude should become kTop, or kTop and up to kTries times kStep
// more or less. A group whose magnitudes are all below kSmallest counts as zeros.
struct Iq2XxsFit {
  static constexpr DType kType = DType::iq2_xxs;
  static constexpr int kGroup = 32, kRow = 8, kTop = 5, kTries = 6;
  static constexpr float kStep = 0.1F, kSmallest = 1e-15F, kStored = 1;
  static constexpr bool kEvenSigns = true;
  static constexpr Again kAgain = Again::all;
};
struct Iq2XsFit {
  static constexpr DType kType = DType::iq2_xs;
  static constexpr int kGroup = 16, kRow = 8, kTop = 5, kTries = 9;
  static constexpr float kStep = 0.1F, kSmallest = 1e-15F, kStored = 1;
  static constexpr bool kEvenSigns = true;
  static constexpr Again kAgain = Again::missing;
};
struct Iq2SFit {
  static constexpr DType kType = DType::iq2_s;
  static constexpr int kGroup = 16, kRow = 8, kTop = 5, kTries = 9;
  static constexpr float kStep = 0.1F, kSmallest = 1e-8F, kStored = 0.9875F;
  static constexpr bool kEvenSigns = false;
  static constexpr Again kAgain = Again::missing;
};
struct Iq3XxsFit {
  static constexpr DType kType = DType::iq3_xxs;
  static constexpr int kGroup = 32, kRow = 4, kTop = 15, kTries = 15;
  static constexpr float kStep = 0.2F, kSmallest = 1e-8F, kStored = 1.0125F;
  static constexpr bool kEvenSigns = true;
  static constexpr Again kAgain = Again::missing;
};
struct Iq3SFit {
  static constexpr DType kType = DType::iq3_s;
  static constexpr int kGroup = 32, kRow = 4, kTop = 15, kTries = 9;
  static constexpr float kStep = 0.2F, kSmallest = std::numeric_limits<float>::denorm_min(), kStored = 1.033F;
  static constexpr bool kEvenSigns = false;
  static constexpr Again kAgain = Again::all_if_missing;
};

// The bits of a level in a code.
template <class Fit>
inline constexpr int kLevelBits = Fit::kRow == 8 ? 2 : 3;

struct Magnitudes {
  const float* weight;
  alignas(64) float x[256];
  alignas(64) float root[256];  // of the weight: how much an element counts when a row is chosen
};

struct GridFits {
  alignas(64) float scale[16];
  bool is_zero[16];         // groups that count as zeros, whose rows are not set
  std::uint16_t codes[64];  // of the rows
};

// If 7 bits stand for 8 signs, the number of minuses must be even: the element that matters least gets the wrong sign,
// and its magnitude is negative.
inline std::uint8_t make_even(std::uint8_t signs, float* magnitudes, const float* weights) {
  if (std::popcount(signs) % 2 == 0) return signs;
  int least = 0;
  float least_error = weights[0] * magnitudes[0] * magnitudes[0];
  for (int j = 1; j < 8; ++j) {
    const float error = weights[j] * magnitudes[j] * magnitudes[j];
    if (!(error < least_error)) continue;
    least = j;
    least_error = error;
  }
  magnitudes[least] = -magnitudes[least];
  return static_cast<std::uint8_t>(signs ^ 1U << least);
}

// A block before its bits are packed.
struct GridBlock {
  float d = 0;  // zero if all scales are
  std::uint8_t scales[16] = {};
  std::uint8_t signs[32];
  std::uint16_t rows[64] = {};
  bool is_zero[16];
};

// The scales become 1, 3, 5 and so on to 31 times the scale of the block. ggml stores a little more or less than that
// scale, because that was seen to be better.
template <class Fit>
inline void round_scales(const GridFits& fits, GridBlock& block) {
  constexpr int kGroups = 256 / Fit::kGroup;
  float most = 0;
  for (int g = 0; g < kGroups; ++g) most = std::max(most, fits.scale[g]);
  if (!(most > 0)) return;
  const float d = most / 31, id = 1 / d;
  block.d = d * Fit::kStored;
  for (int g = 0; g < kGroups; ++g)
    block.scales[g] = static_cast<std::uint8_t>(std::clamp(nearest(0.5F * (id * fits.scale[g] - 1)), 0, 15));
}

// A negative scale is positive if all signs are inverted. A scale that overflowed to NaN becomes zero.
template <class Fit>
inline void make_positive(GridFits& fits, std::uint8_t* signs) {
  for (int g = 0; g < 256 / Fit::kGroup; ++g) {
    if (fits.scale[g] < 0) {
      for (int r = 0; r < Fit::kGroup / 8; ++r) signs[g * (Fit::kGroup / 8) + r] ^= 255;
    }
    fits.scale[g] = std::isnan(fits.scale[g]) ? 0 : std::fabs(fits.scale[g]);
  }
}

template <class Search, class Fit>
inline void fit_block(const float* x, const float* weights, GridBlock& block) {
  Magnitudes magnitudes;
  GridFits fits;
  const Grid& grid = grid_of(Fit::kType);
  Search::take_magnitudes(x, weights, magnitudes, block.signs);
  for (int r = 0; r < 32 && Fit::kEvenSigns; ++r)
    block.signs[r] = make_even(block.signs[r], magnitudes.x + 8 * r, weights + 8 * r);
  Search::template fit_grid<Fit>(grid, magnitudes, fits);
  make_positive<Fit>(fits, block.signs);
  round_scales<Fit>(fits, block);
  for (int r = 0; r < 256 / Fit::kRow; ++r) {
    const int g = r * Fit::kRow / Fit::kGroup;
    block.is_zero[g] = fits.is_zero[g];
    if (!fits.is_zero[g])
      block.rows[r] = static_cast<std::uint16_t>(grid.index(fits.codes[r]));
    else
      block.signs[r * Fit::kRow / 8] = 0;
  }
}

// f16 d; u32 qs[16]: for each 32 elements four indices of a byte, then four times 7 signs and a scale of 4 bits
template <class Search>
inline void to_iq2_xxs(const float* x, const float* weights, std::uint8_t* out) {
  GridBlock block;
  fit_block<Search, Iq2XxsFit>(x, weights, block);
  put_f16(block.d, out);
  if (block.d == 0) return static_cast<void>(std::memset(out + 2, 0, 64));
  for (int g = 0; g < 8; ++g) {
    std::uint32_t rest = static_cast<std::uint32_t>(block.scales[g]) << 28;
    for (int r = 0; r < 4; ++r) {
      out[2 + 8 * g + r] = static_cast<std::uint8_t>(block.rows[4 * g + r]);
      rest |= (block.signs[4 * g + r] & 127U) << 7 * r;
    }
    put_u32(rest, out + 2 + 8 * g + 4);
  }
}

inline void put_scale_pairs(const std::uint8_t* scales, int count, std::uint8_t* out) {
  for (int g = 0; g < count; g += 2) out[g / 2] = static_cast<std::uint8_t>(scales[g] | scales[g + 1] << 4);
}

// f16 d; u16 qs[32], 9 bits of index and 7 of signs; u8 scales[8]
template <class Search>
inline void to_iq2_xs(const float* x, const float* weights, std::uint8_t* out) {
  GridBlock block;
  fit_block<Search, Iq2XsFit>(x, weights, block);
  put_f16(block.d, out);
  if (block.d == 0) return static_cast<void>(std::memset(out + 2, 0, 72));
  for (int r = 0; r < 32; ++r) put_u16(block.rows[r] | (block.signs[r] & 127U) << 9, out + 2 + 2 * r);
  put_scale_pairs(block.scales, 16, out + 66);
}

// f16 d; u8 qs[32]; u8 signs[32]; u8 qh[8], bits 8 and 9 of each index; u8 scales[8]
template <class Search>
inline void to_iq2_s(const float* x, const float* weights, std::uint8_t* out) {
  GridBlock block;
  fit_block<Search, Iq2SFit>(x, weights, block);
  std::memset(out, 0, 82);
  put_f16(block.d, out);
  for (int r = 0; r < 32; ++r) {
    out[2 + r] = static_cast<std::uint8_t>(block.rows[r]);
    out[34 + r] = block.signs[r];
    out[66 + r / 4] = static_cast<std::uint8_t>(out[66 + r / 4] | block.rows[r] >> 8 << r % 4 * 2);
  }
  put_scale_pairs(block.scales, 16, out + 74);
}

// f16 d; u8 qs[64]; u32 rest[8]: four times 7 signs and a scale of 4 bits
template <class Search>
inline void to_iq3_xxs(const float* x, const float* weights, std::uint8_t* out) {
  GridBlock block;
  fit_block<Search, Iq3XxsFit>(x, weights, block);
  put_f16(block.d, out);
  if (block.d == 0) return static_cast<void>(std::memset(out + 2, 0, 96));
  for (int r = 0; r < 64; ++r) out[2 + r] = static_cast<std::uint8_t>(block.rows[r]);
  for (int g = 0; g < 8; ++g) {
    std::uint32_t rest = static_cast<std::uint32_t>(block.scales[g]) << 28;
    for (int r = 0; r < 4; ++r) rest |= (block.signs[4 * g + r] & 127U) << 7 * r;
    put_u32(rest, out + 66 + 4 * g);
  }
}

// f16 d; u8 qs[64]; u8 qh[8], bit 8 of each index; u8 signs[32]; u8 scales[4].
// ggml writes the low bits and the signs of a group behind those of the last group that is not zero, as if groups of
// zeros took no room, and llama.cpp's files have such blocks; so do ours.
template <class Search>
inline void to_iq3_s(const float* x, const float* weights, std::uint8_t* out) {
  GridBlock block;
  fit_block<Search, Iq3SFit>(x, weights, block);
  std::memset(out, 0, 110);
  put_f16(block.d, out);
  for (int g = 0, place = 0; g < 8; ++g) {
    if (block.is_zero[g]) continue;
    for (int r = 0; r < 8; ++r) {
      const unsigned row = block.rows[8 * g + r];
      out[2 + 8 * place + r] = static_cast<std::uint8_t>(row);
      out[66 + g] = static_cast<std::uint8_t>(out[66 + g] | row >> 8 << r);
    }
    std::memcpy(out + 74 + 4 * place, block.signs + 4 * g, 4);
    ++place;
  }
  put_scale_pairs(block.scales, 8, out + 106);
}

}  // namespace ballast::kernels::plain
