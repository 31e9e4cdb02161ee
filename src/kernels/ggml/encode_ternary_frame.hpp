// IQ1_S and IQ1_M: everything except the search for scales, which is a parameter, as in encode_frame.hpp.
//
// A block of 256 elements is cut into groups with a scale each, and a group into rows of 8 elements. A row of the grid
// has the values -1, 0 and 1, all moved by an eighth up or down: all of a group (IQ1_S), or each row of it (IQ1_M).
//
// A Search has
//   split_groups<Fit>(x, weights, order, splits)    for every group of a block: which of its values, from the lowest
//   up,
//                                                   should be level 0, 1 and 2, and which rows are moved down
//   nearest_of(near, x, weights, values, scale)     the row nearest to eight elements
#pragma once

#include "kernels/ggml/decode_plain.hpp"
#include "kernels/ggml/encode_plain_grid.hpp"

namespace ballast::kernels::plain {

struct Iq1SFit {
  static constexpr int kGroup = 32, kMoves = 2;  // up, down
  static constexpr float kSmallest = 1e-12F;
};
struct Iq1MFit {
  static constexpr int kGroup = 16, kMoves = 4;  // of the two rows: up and up, up and down, down and up, down and down
  static constexpr float kSmallest = 1e-7F;
};

// The values of the levels, moved up and moved down, and again for vectors of eight.
inline constexpr float kMovedLevels[2][8] = {{-0.875F, 0.125F, 1.125F, 0, -0.875F, 0.125F, 1.125F, 0},
                                             {-1.125F, -0.125F, 0.875F, 0, -1.125F, -0.125F, 0.875F, 0}};

// Whether row r of a group is moved down.
template <class Fit>
constexpr bool is_down(int move, int r) {
  return (Fit::kMoves == 2 || r == 1 ? move & 1 : move >> 1) != 0;
}

// The first `low` of the sorted values are level 0, the others up to `high` level 1, the rest level 2. If there is no
// scale, `low` is negative.
struct Split {
  float scale;
  int low, high, move;
};

// The elements of a group from the lowest value up; equal ones keep their order, as glibc's qsort kept it for ggml.
template <int kGroup>
inline void sort_group(const float* x, std::uint8_t* order) {
  for (int i = 0; i < kGroup; ++i) {
    int place = i;
    for (; place > 0 && x[order[place - 1]] > x[i]; --place) order[place] = order[place - 1];
    order[place] = static_cast<std::uint8_t>(i);
  }
}

// A group before its bits are packed.
struct TernaryGroup {
  float scale = 0;
  int move = 0;
  std::uint16_t rows[4] = {};
};

// Rounds the rows of a group to the grid, and fits the scale again if the grid does not have all of them.
template <class Search, class Fit>
inline TernaryGroup round_rows(const float* x, const float* weights, const Split& split, const std::uint8_t* order) {
  const Grid& grid = grid_of(DType::iq1_s);
  TernaryGroup group{split.scale, split.move, {}};
  unsigned codes[Fit::kGroup / 8] = {};
  const bool is_inverted = group.scale < 0;
  if (is_inverted) {
    group.scale = -group.scale;
    group.move ^= Fit::kMoves - 1;
  }
  for (int j = 0; j < Fit::kGroup; ++j) {
    const unsigned level = j < split.low ? 0 : j < split.high ? 1 : 2;
    codes[order[j] / 8] |= (is_inverted ? 2 - level : level) << 2 * (order[j] % 8);
  }
  bool is_missing = false;
  WeightedSums sums;
  for (int r = 0; r < Fit::kGroup / 8; ++r, x += 8, weights += 8) {
    const float(&values)[8] = kMovedLevels[is_down<Fit>(group.move, r)];
    if (!grid.has(codes[r])) {
      is_missing = true;
      codes[r] = Search::nearest_of(grid.near(codes[r]), x, weights, values, group.scale);
    }
    group.rows[r] = static_cast<std::uint16_t>(grid.index(codes[r]));
    for (int j = 0; j < 8; ++j) {
      const float q = values[codes[r] >> 2 * j & 3];
      sums.xl += weights[j] * q * x[j];
      sums.l2 += weights[j] * q * q;
    }
  }
  if (is_missing && sums.xl > 0 && sums.l2 > 0) group.scale = sums.xl / sums.l2;
  return group;
}

template <class Search, class Fit>
inline float fit_ternary(const float* x, const float* weights, TernaryGroup* groups) {
  constexpr int kGroups = 256 / Fit::kGroup;
  std::uint8_t order[256];
  Split splits[256 / Fit::kGroup];
  for (int g = 0; g < kGroups; ++g) sort_group<Fit::kGroup>(x + g * Fit::kGroup, order + g * Fit::kGroup);
  Search::template split_groups<Fit>(x, weights, order, splits);
  float most = 0;
  for (int g = 0; g < kGroups; ++g) {
    const int at = g * Fit::kGroup;
    groups[g] = {};
    if (splits[g].low < 0) continue;
    groups[g] = round_rows<Search, Fit>(x + at, weights + at, splits[g], order + at);
    most = std::max(most, groups[g].scale);
  }
  return most;
}

// The scales become 1, 3, 5 and so on to 15 times the scale of the block.
inline unsigned ternary_scale(float id, float scale) {
  return static_cast<unsigned>(std::clamp(nearest(0.5F * (id * scale - 1)), 0, 7));
}

// f16 d; u8 qs[32]; u16 qh[8]: bits 8 to 10 of four indices, a scale of 3 bits, and on top whether to move down
template <class Search>
inline void to_iq1_s(const float* x, const float* weights, std::uint8_t* out) {
  TernaryGroup groups[8];
  const float most = fit_ternary<Search, Iq1SFit>(x, weights, groups), d = most / 15, id = 1 / d;
  put_f16(d * 1.125F, out);
  for (int g = 0; g < 8; ++g) {
    unsigned rest =
        most > 0 ? ternary_scale(id, groups[g].scale) << 12 | static_cast<unsigned>(groups[g].move) << 15 : 0;
    for (int r = 0; r < 4; ++r) {
      out[2 + 4 * g + r] = static_cast<std::uint8_t>(groups[g].rows[r]);
      rest |= static_cast<unsigned>(groups[g].rows[r]) >> 8 << 3 * r;
    }
    put_u16(rest, out + 34 + 2 * g);
  }
}

// The scale that fits the whole block best when the scales of the groups are rounded.
inline float iq1_m_scale(const float* x, const float* weights, const TernaryGroup* groups, const unsigned* scales,
                         float otherwise) {
  WeightedSums sums;
  for (int i = 0; i < 256; ++i) {
    const TernaryGroup& group = groups[i / 16];
    const int level = static_cast<std::int8_t>(kIq1SGrid[group.rows[i % 16 / 8]] >> 8 * (i % 8)) + 1;
    const float value = kMovedLevels[is_down<Iq1MFit>(group.move, i % 16 / 8)][level];
    const float q = value * number(static_cast<int>(2 * scales[i / 16] + 1));
    sums.xl += weights[i] * q * x[i];
    sums.l2 += weights[i] * q * q;
  }
  return sums.l2 > 0 ? sums.xl / sums.l2 : otherwise;
}

// u8 qs[32]; u8 qh[16]: for each index, 3 more bits and whether to move down; u16 scales[4]: each four scales of 3 bits
// for 16 elements, and a nibble of d, an f16
template <class Search>
inline void to_iq1_m(const float* x, const float* weights, std::uint8_t* out) {
  TernaryGroup groups[16];
  const float most = fit_ternary<Search, Iq1MFit>(x, weights, groups), d = most / 15, id = 1 / d;
  std::memset(out, 0, 56);
  unsigned scales[16] = {}, words[4] = {};
  for (int g = 0; g < 16; ++g) {
    const TernaryGroup& group = groups[g];
    out[2 * g] = static_cast<std::uint8_t>(group.rows[0]);
    out[2 * g + 1] = static_cast<std::uint8_t>(group.rows[1]);
    out[32 + g] = static_cast<std::uint8_t>(group.rows[0] >> 8 | group.rows[1] >> 8 << 4);
    if (!(most > 0)) continue;
    out[32 + g] = static_cast<std::uint8_t>(out[32 + g] | (group.move >> 1) << 3 | (group.move & 1) << 7);
    scales[g] = ternary_scale(id, group.scale);
    words[g / 4] |= scales[g] << 3 * (g % 4);
  }
  if (!(most > 0)) return;
  const unsigned stored = f16_bits(iq1_m_scale(x, weights, groups, scales, d) * 1.1125F);
  for (unsigned i = 0; i < 4; ++i) put_u16(words[i] | (stored >> 4 * i & 15) << 12, out + 48 + 2 * i);
}

}  // namespace ballast::kernels::plain
