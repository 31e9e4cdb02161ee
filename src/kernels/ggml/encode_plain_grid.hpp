// How ggml searches for the scales and the rows of the IQ types of two and three bits, in plain loops: the Search of
// encode_grid_frame.hpp that the vector code is tested against.
#pragma once

#include "kernels/ggml/encode_grid_frame.hpp"
#include "kernels/ggml/encode_plain_weighted.hpp"

namespace ballast::kernels::plain {

// The code among `near` whose integers, `value` of a level and times a scale, are nearest to x; the first one if
// several are equally near, or if none is, because of an overflow.
template <int kRow, class Value>
inline std::uint16_t nearest_row(std::span<const std::uint16_t> near, const float* x, const float* weights,
                                 Value value) {
  constexpr int kBits = kRow == 8 ? 2 : 3;
  float least = std::numeric_limits<float>::max();
  std::uint16_t best = near.front();
  for (const std::uint16_t code : near) {
    float sum = 0;
    for (int j = 0; j < kRow; ++j) {
      const float difference = value(code >> kBits * j & ((1 << kBits) - 1)) - x[j];
      sum += weights[j] * difference * difference;
    }
    if (!(sum < least)) continue;
    least = sum;
    best = code;
  }
  return best;
}

// One group fitted by rows of the grid times a scale.
template <class Fit>
class GridSearch {
 public:
  GridSearch(const Grid& grid, const Magnitudes& magnitudes, int g)
      : grid_(grid),
        x_(magnitudes.x + g * Fit::kGroup),
        weights_(magnitudes.weight + g * Fit::kGroup),
        roots_(magnitudes.root + g * Fit::kGroup) {}

  // Returns false if the group counts as zeros.
  bool run(float& scale, std::uint16_t* codes) {
    scale = 0;
    float most = *std::max_element(x_, x_ + Fit::kGroup);
    if (most < Fit::kSmallest) return false;
    if constexpr (Fit::kType == DType::iq2_xxs) {
      std::uint8_t unused[Fit::kGroup];
      scale = PositiveSearch<Fit::kGroup, 4>(x_, weights_).run(unused);
      most = scale * 3;
      if (most <= 0) return false;
    } else {
      scale = most / Fit::kTop;
    }
    float explained = 0;
    unsigned missing = Fit::kAgain == Again::missing ? 0 : kAllRows;
    std::fill_n(codes, kRows, std::uint16_t{0});
    for (int i = -Fit::kTries; i <= Fit::kTries; ++i) {
      std::uint16_t these[Fit::kGroup / Fit::kRow];
      const float id = (Fit::kTop + number(i) * Fit::kStep) / most;
      const unsigned these_missing = choose(kAllRows, id, 1 / id, these);
      const WeightedSums sums = sums_of(these);
      if (!(sums.l2 > 0 && sums.xl * sums.xl > explained * sums.l2)) continue;
      scale = sums.xl / sums.l2;
      explained = scale * sums.xl;
      missing = these_missing;
      std::copy_n(these, kRows, codes);
    }
    const unsigned again =
        Fit::kAgain == Again::missing || (Fit::kAgain == Again::all_if_missing && missing == 0) ? missing : kAllRows;
    if (again == 0 || !(scale > 0)) return true;
    choose(again, 1 / scale, scale, codes);
    const WeightedSums sums = sums_of(codes);
    if (sums.l2 > 0) scale = sums.xl / sums.l2;
    return true;
  }

 private:
  static constexpr int kRows = Fit::kGroup / Fit::kRow, kBits = kLevelBits<Fit>;
  static constexpr unsigned kAllRows = (1U << kRows) - 1;

  // Sets the codes of some of the rows. Returns the rows that the grid does not have.
  unsigned choose(unsigned rows, float id, float scale, std::uint16_t* codes) const {
    unsigned missing = 0;
    for (int r = 0; r < kRows; ++r) {
      if ((rows >> r & 1) == 0) continue;
      const float* x = x_ + r * Fit::kRow;
      unsigned code = 0;
      for (int j = 0; j < Fit::kRow; ++j)
        code |= static_cast<unsigned>(std::clamp(nearest(0.5F * (id * x[j] - 1)), 0, Fit::kTop / 2)) << kBits * j;
      codes[r] = static_cast<std::uint16_t>(code);
      if (grid_.has(code)) continue;
      missing |= 1U << r;
      codes[r] = nearest_row<Fit::kRow>(grid_.near(code), x, roots_ + r * Fit::kRow,
                                        [scale](int level) { return scale * number(2 * level + 1); });
    }
    return missing;
  }

  WeightedSums sums_of(const std::uint16_t* codes) const {
    WeightedSums sums;
    for (int j = 0; j < Fit::kGroup; ++j) {
      const int level = codes[j / Fit::kRow] >> kBits * (j % Fit::kRow) & ((1 << kBits) - 1);
      sums.add(weights_[j], x_[j], number(2 * level + 1));
    }
    return sums;
  }

  const Grid& grid_;
  const float* x_;
  const float* weights_;
  const float* roots_;
};

struct PlainGridSearch {
  static void take_magnitudes(const float* x, const float* weights, Magnitudes& magnitudes, std::uint8_t* signs) {
    std::memset(signs, 0, 32);
    magnitudes.weight = weights;
    for (int j = 0; j < 256; ++j) {
      magnitudes.x[j] = std::fabs(x[j]);
      magnitudes.root[j] = std::sqrt(weights[j]);
      signs[j / 8] = static_cast<std::uint8_t>(signs[j / 8] | (x[j] < 0 ? 1 : 0) << j % 8);
    }
  }

  template <class Fit>
  static void fit_grid(const Grid& grid, const Magnitudes& magnitudes, GridFits& fits) {
    for (int g = 0; g < 256 / Fit::kGroup; ++g)
      fits.is_zero[g] =
          !GridSearch<Fit>(grid, magnitudes, g).run(fits.scale[g], fits.codes + g * Fit::kGroup / Fit::kRow);
  }
};

}  // namespace ballast::kernels::plain
