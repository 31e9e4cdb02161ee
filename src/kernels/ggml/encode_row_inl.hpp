// plain::nearest_row for one instruction set: the sums of kLanes rows at once. Included as encode_inl.hpp is.
#if defined(BALLAST_GGML_ENCODE_ROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef BALLAST_GGML_ENCODE_ROW_INL
#undef BALLAST_GGML_ENCODE_ROW_INL
#else
#define BALLAST_GGML_ENCODE_ROW_INL
#endif

#include "kernels/ggml/encode_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

// The values of a row's levels: three, repeated every four lanes, or eight, in as many vectors as they need.
template <std::size_t kRow>
struct LevelValues {
  static constexpr std::size_t kVectors = kRow == 8 ? 1 : 8 / kLanes;

  // The numbers times the scale. If there are three levels, the numbers are 0, 1, 2, any, 0, 1, 2, any.
  HWY_INLINE LevelValues(const float (&numbers)[8], float scale) {
    for (std::size_t i = 0; i < kVectors; ++i) scaled[i] = hn::Mul(all(scale), load(numbers + i * kLanes));
  }

  Floats scaled[kVectors];
};

// How far rows are from the elements of one row.
template <std::size_t kRow>
class RowErrors {
 public:
  HWY_INLINE RowErrors(const LevelValues<kRow>& values, const float* x, const float* weights) {
    for (std::size_t j = 0; j < kRow; ++j) {
      for (std::size_t i = 0; i < kVectors; ++i) {
        const Floats difference = hn::Sub(values.scaled[i], all(x[j]));
        errors_[j][i] = hn::Mul(hn::Mul(all(weights[j]), difference), difference);
      }
    }
  }

  HWY_INLINE Floats of(Ints codes) const {
    Floats sum = look_up(0, codes);
    for (std::size_t j = 1; j < kRow; ++j) {
      codes = hn::ShiftRight < kRow == 8 ? 2 : 3 > (codes);
      sum = hn::Add(sum, look_up(j, codes));
    }
    return sum;
  }

 private:
  static constexpr std::size_t kVectors = LevelValues<kRow>::kVectors;

  // The level of element j is in the low bits of each code.
  HWY_INLINE Floats look_up(std::size_t j, Ints codes) const {
    const I32 d;
    const auto from = [&](std::size_t i, int mask) {
      return hn::TableLookupLanes(errors_[j][i], hn::IndicesFromVec(F32(), hn::And(codes, hn::Set(d, mask))));
    };
    if constexpr (kVectors == 1) return from(0, kRow == 8 ? 3 : 7);
    const auto is_high = hn::Ne(hn::And(codes, hn::Set(d, 4)), hn::Zero(d));
    return hn::IfThenElse(hn::RebindMask(F32(), is_high), from(kVectors - 1, 3), from(0, 3));
  }

  Floats errors_[kRow][kVectors];
};

template <std::size_t kRow>
HWY_INLINE std::uint16_t nearest_row(std::span<const std::uint16_t> near, const float* x, const float* weights,
                                     const LevelValues<kRow>& values) {
  const I32 d;
  const hn::Rebind<std::uint16_t, I32> d16;
  const RowErrors<kRow> errors(values, x, weights);
  constexpr float kMost = std::numeric_limits<float>::max();
  Floats least = all(kMost);
  Ints places = hn::Zero(d), these_places = hn::Iota(d, 0);
  for (std::size_t i = 0; i < near.size(); i += kLanes) {
    const Floats sums = errors.of(hn::PromoteTo(d, hn::LoadU(d16, near.data() + i)));
    const Mask is_nearer = hn::Lt(sums, least);
    least = hn::IfThenElse(is_nearer, sums, least);
    places = hn::IfThenElse(hn::RebindMask(d, is_nearer), these_places, places);
    these_places = hn::Add(these_places, hn::Set(d, static_cast<std::int32_t>(kLanes)));
  }
  const Floats nearest = hn::MinOfLanes(F32(), least);
  if (HWY_UNLIKELY(hn::GetLane(nearest) == kMost)) return near.front();
  const auto is_nearest = hn::RebindMask(d, hn::Eq(least, nearest));
  const Ints candidates = hn::IfThenElse(is_nearest, places, hn::Set(d, std::numeric_limits<std::int32_t>::max()));
  return near[static_cast<std::size_t>(hn::GetLane(hn::MinOfLanes(d, candidates)))];
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#endif
