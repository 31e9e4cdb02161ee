#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_grid.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_row_inl.hpp"
#include "kernels/ggml/encode_search_inl.hpp"

// The IQ types of two and three bits, a group a lane; but the rows near one are looked through a row at a time.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_grid_on_target(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  encode_plainly(type, in, weights, count, out);
}
#else

// plain::GridSearch of kLanes groups at once.
template <class Fit>
class GridSearches {
 public:
  GridSearches(const Grid& grid, const plain::Magnitudes& magnitudes, std::size_t g)
      : grid_(grid), x_(magnitudes.x + g * Fit::kGroup), roots_(magnitudes.root + g * Fit::kGroup) {
    across_x_.fill(x_);
    weights_.fill(magnitudes.weight + g * Fit::kGroup);
    for (std::size_t j = 0; j < kGroup; ++j) weighted_x_.set(j, hn::Mul(weights_[j], across_x_[j]));
    most_ = across_x_[0];
    for (std::size_t j = 1; j < kGroup; ++j) most_ = hn::Max(most_, across_x_[j]);
    is_zero_ = hn::Lt(most_, all(Fit::kSmallest));
    scale_ = hn::Div(most_, all(Fit::kTop));
    if constexpr (Fit::kType == DType::iq2_xxs) start_from_positive_fit(magnitudes.weight + g * Fit::kGroup);
  }

  void run(std::size_t g, plain::GridFits& fits) {
    const I32 d;
    const std::uint32_t zeros = bits_from(is_zero_), live = ~zeros & ((1U << kLanes) - 1);
    for (std::size_t i = 0; i < kLanes; ++i) fits.is_zero[g + i] = (zeros >> i & 1) != 0;
    Best best(scale_);
    Rows kept = {};
    Ints missing = hn::Set(d, Fit::kAgain == plain::Again::missing ? 0 : kAllRows);
    for (int i = -Fit::kTries; i <= Fit::kTries && live != 0; ++i) {
      const Floats id = hn::Div(all(Fit::kTop + static_cast<float>(i) * Fit::kStep), most_);
      Rows rows;
      const Ints these_missing = choose(id, hn::Div(all(1), id), live, rows);
      const auto is_better = hn::RebindMask(d, best.improve(sums_of(rows)));
      missing = hn::IfThenElse(is_better, these_missing, missing);
      for (std::size_t r = 0; r < kRows; ++r) rows_set(kept, r, hn::IfThenElse(is_better, row(rows, r), row(kept, r)));
    }
    scale_ = best.scale;
    choose_again(missing, live, kept);
    hn::Store(hn::IfThenZeroElse(is_zero_, scale_), F32(), fits.scale + g);
    for (std::size_t i = 0; i < kLanes; ++i) {
      for (std::size_t r = 0; r < kRows; ++r)
        fits.codes[(g + i) * kRows + r] = static_cast<std::uint16_t>(kept.codes[r][i]);
    }
  }

 private:
  static constexpr std::size_t kGroup = Fit::kGroup, kRow = Fit::kRow, kRows = kGroup / kRow;
  static constexpr int kBits = plain::kLevelBits<Fit>, kAllRows = (1 << kRows) - 1;

  // The codes of the rows of the groups.
  struct Rows {
    alignas(64) std::int32_t codes[kRows][kLanes];
  };
  static HWY_INLINE Ints row(const Rows& rows, std::size_t r) { return hn::Load(I32(), rows.codes[r]); }
  static HWY_INLINE void rows_set(Rows& rows, std::size_t r, Ints codes) { hn::Store(codes, I32(), rows.codes[r]); }

  void start_from_positive_fit(const float* weights) {
    scale_ = PositiveSearches<kGroup, 4>::template of<kGroup>(x_, weights).run();
    most_ = hn::Mul(scale_, all(3));
    is_zero_ = hn::Or(is_zero_, hn::Le(most_, hn::Zero(F32())));
  }

  // Sets the codes of all rows of the groups. Returns a bit for each row that the grid does not have; such a row is
  // replaced only in the groups that `groups` has a bit for.
  HWY_INLINE Ints choose(Floats id, Floats scale, std::uint32_t groups, Rows& rows) const {
    alignas(64) float scales[kLanes];
    alignas(64) std::int32_t missing[kLanes] = {};
    hn::Store(scale, F32(), scales);
    for (std::size_t r = 0; r < kRows; ++r) rows_set(rows, r, codes_for(id, r));
    for (std::uint32_t rest = groups; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(rest));
      const LevelValues<kRow> values(kLevels, scales[i]);
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto code = static_cast<std::size_t>(rows.codes[r][i]);
        if (grid_.has(code)) continue;
        missing[i] |= 1 << r;
        const std::size_t at = i * kGroup + r * kRow;
        rows.codes[r][i] = nearest_row<kRow>(grid_.near(code), x_ + at, roots_ + at, values);
      }
    }
    return hn::Load(I32(), missing);
  }

  HWY_INLINE Ints codes_for(Floats id, std::size_t r) const {
    Ints code = hn::Zero(I32());
    for (std::size_t j = kRow; j-- > 0;) {
      const Floats scaled = hn::Sub(hn::Mul(id, across_x_[r * kRow + j]), all(1));
      code = hn::Or(hn::ShiftLeft<kBits>(code), nearest_within<0, Fit::kTop / 2>(hn::Mul(all(0.5F), scaled)));
    }
    return code;
  }

  HWY_INLINE Sums sums_of(const Rows& rows) const {
    const I32 d;
    Sums sums = no_sums();
    for (std::size_t r = 0; r < kRows; ++r) {
      Ints doubled = hn::ShiftLeft<1>(row(rows, r));
      for (std::size_t j = r * kRow; j < (r + 1) * kRow; ++j) {
        const Ints odd = hn::Or(hn::And(doubled, hn::Set(d, (2 << kBits) - 2)), hn::Set(d, 1));
        const Floats q = hn::ConvertTo(F32(), odd);
        sums.xl = hn::Add(sums.xl, hn::Mul(weighted_x_[j], q));
        sums.l2 = hn::Add(sums.l2, hn::Mul(hn::Mul(weights_[j], q), q));
        doubled = hn::ShiftRight<kBits>(doubled);
      }
    }
    return sums;
  }

  void choose_again(Ints missing, std::uint32_t live, Rows& kept) {
    const I32 d;
    if constexpr (Fit::kAgain == plain::Again::all_if_missing) {
      missing = hn::IfThenElseZero(hn::Gt(missing, hn::Zero(d)), hn::Set(d, kAllRows));
    } else if constexpr (Fit::kAgain == plain::Again::all) {
      missing = hn::Set(d, kAllRows);
    }
    const Mask has_missing = hn::RebindMask(F32(), hn::Gt(missing, hn::Zero(d)));
    const Mask is_again = hn::And(has_missing, hn::Gt(scale_, hn::Zero(F32())));
    const std::uint32_t groups = bits_from(is_again) & live;
    if (groups == 0) return;
    Rows rows;
    choose(hn::Div(all(1), scale_), scale_, groups, rows);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto is_row = hn::TestBit(missing, hn::Set(d, 1 << r));
      const auto is_chosen = hn::And(is_row, hn::RebindMask(d, is_again));
      rows_set(kept, r, hn::IfThenElse(is_chosen, row(rows, r), row(kept, r)));
    }
    const Sums sums = sums_of(kept);
    const Mask has_scale = hn::And(is_again, hn::Gt(sums.l2, hn::Zero(F32())));
    scale_ = hn::IfThenElse(has_scale, hn::Div(sums.xl, sums.l2), scale_);
  }

  static constexpr float kThreeLevels[8] = {1, 3, 5, 7, 1, 3, 5, 7};
  static constexpr float kEightLevels[8] = {1, 3, 5, 7, 9, 11, 13, 15};
  static constexpr const float (&kLevels)[8] = kRow == 8 ? kThreeLevels : kEightLevels;

  const Grid& grid_;
  const float* x_;
  const float* roots_;
  Across<kGroup> across_x_, weights_, weighted_x_;
  Floats most_, scale_;
  Mask is_zero_;
};

struct GridSearch {
  static void take_magnitudes(const float* x, const float* weights, plain::Magnitudes& magnitudes,
                              std::uint8_t* signs) {
    magnitudes.weight = weights;
    for (std::size_t i = 0; i < 256; i += 8) {
      std::uint32_t bits = 0;
      for (std::size_t j = 0; j < 8; j += kLanes) {
        const Floats some = load(x + i + j);
        bits |= bits_from(hn::Lt(some, hn::Zero(F32()))) << j;
        hn::Store(hn::Abs(some), F32(), magnitudes.x + i + j);
        hn::Store(hn::Sqrt(load(weights + i + j)), F32(), magnitudes.root + i + j);
      }
      signs[i / 8] = static_cast<std::uint8_t>(bits);
    }
  }

  template <class Fit>
  static void fit_grid(const Grid& grid, const plain::Magnitudes& magnitudes, plain::GridFits& fits) {
    for (std::size_t g = 0; g < 256 / Fit::kGroup; g += kLanes) GridSearches<Fit>(grid, magnitudes, g).run(g, fits);
  }
};

template <plain::EncodeWeightedBlock kEncode>
void encode_blocks_of_256(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  for (; count > 0; --count, in += 256, weights += 256, out += info(type).block_bytes) kEncode(in, weights, out);
}

void encode_grid_on_target(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  switch (type) {
    case DType::iq2_xxs: return encode_blocks_of_256<plain::to_iq2_xxs<GridSearch> >(type, in, weights, count, out);
    case DType::iq2_xs: return encode_blocks_of_256<plain::to_iq2_xs<GridSearch> >(type, in, weights, count, out);
    case DType::iq2_s: return encode_blocks_of_256<plain::to_iq2_s<GridSearch> >(type, in, weights, count, out);
    case DType::iq3_xxs: return encode_blocks_of_256<plain::to_iq3_xxs<GridSearch> >(type, in, weights, count, out);
    default: return encode_blocks_of_256<plain::to_iq3_s<GridSearch> >(type, in, weights, count, out);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(encode_grid_on_target);

void encode_grid(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_grid_on_target)(type, in, weights, count, out);
}

}  // namespace ballast::kernels
#endif
