#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_weighted.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_min_inl.hpp"
#include "kernels/ggml/encode_search_inl.hpp"
#include "kernels/ggml/encode_weighted_frame.hpp"

// Q4_0 to Q5_K if the elements have weights.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_weighted_on_target(DType type, const float* in, const float* weights, std::size_t count,
                               std::uint8_t* out) {
  encode_plainly(type, in, weights, count, out);
}
#else

struct WeightedSearch : GroupCodes {
  static constexpr std::size_t kBatch = kLanes;
  static constexpr std::size_t kFitsApart = sizeof(plain::Fits) / sizeof(float);

  template <class Fit>
  static void fit_from_min(const float* x, const float* weights, plain::Fits& fits) {
    for (std::size_t g = 0; g < 256 / Fit::kGroup; g += kLanes)
      MinSearches<Fit>(x + g * Fit::kGroup, weights + g * Fit::kGroup).run(g, fits);
  }

  static void fit_around_zero_by_4(const float* x, const float* weights, plain::Fits& fits) {
    for (std::size_t g = 0; g < 16; g += kLanes) {
      const Groups<16> groups(x + 16 * g, weights + 16 * g);
      const ScaleFits found = fit_groups_around_zero<4>(groups);
      Floats weight = hn::Zero(F32());
      for (std::size_t j = 0; j < 16; ++j) weight = hn::Add(weight, groups.weight[j]);
      hn::Store(found.scale, F32(), fits.scale + g);
      hn::Store(found.code_scale, F32(), fits.code_scale + g);
      hn::Store(weight, F32(), fits.weight + g);
    }
  }

  template <int kCount, int kMost>
  static void fit_positive(const float* values, const float* weights, plain::PositiveFit* found) {
    using Searches = PositiveSearches<kCount, kMost>;
    Searches searches = Searches::template of<kFitsApart>(values, weights);
    alignas(64) float scales[kLanes];
    alignas(64) std::int32_t codes[kLanes];
    hn::Store(searches.run(), F32(), scales);
    for (std::size_t i = 0; i < kLanes; ++i) found[i].scale = scales[i];
    for (std::size_t j = 0; j < kCount; ++j) {
      hn::Store(searches.codes(j), I32(), codes);
      for (std::size_t i = 0; i < kLanes; ++i) found[i].codes[j] = static_cast<std::uint8_t>(codes[i]);
    }
  }

  static void fit_scales(const float* values, const float* weights, plain::ScaleFit* found) {
    put(fit_groups_around_zero<32>(Groups<16, kFitsApart>(values, weights)), found);
  }

  template <int kMost>
  static void fit_32s(const float* x, const float* weights, plain::ScaleFit* found) {
    put(fit_groups_around_zero<kMost>(Groups<32>(x, weights)), found);
  }

  template <class Fit>
  static void fit_32s_from_min(const float* x, const float* weights, plain::Fits& fits) {
    MinSearches<Fit>(x, weights).run(0, fits);
  }

 private:
  static void put(const ScaleFits& from, plain::ScaleFit* found) {
    alignas(64) float scales[kLanes], code_scales[kLanes];
    hn::Store(from.scale, F32(), scales);
    hn::Store(from.code_scale, F32(), code_scales);
    for (std::size_t i = 0; i < kLanes; ++i) found[i] = {scales[i], code_scales[i]};
  }
};

// The blocks of 32 elements are encoded as many at once as there are lanes.
template <plain::EncodeWeightedBlocks kEncode>
void encode_32s(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  const std::size_t some = count - count % kLanes;
  kEncode(in, weights, some, out);
  encode_plainly(type, in + 32 * some, weights + 32 * some, count - some, out + info(type).block_bytes * some);
}

void encode_weighted_on_target(DType type, const float* in, const float* weights, std::size_t count,
                               std::uint8_t* out) {
  using Search = WeightedSearch;
  switch (type) {
    case DType::q4_0: return encode_32s<plain::encode_weighted_around_zero<Search, 8> >(type, in, weights, count, out);
    case DType::q5_0: return encode_32s<plain::encode_weighted_around_zero<Search, 16> >(type, in, weights, count, out);
    case DType::q4_1: return encode_32s<plain::encode_weighted_above_min<Search, 15> >(type, in, weights, count, out);
    case DType::q5_1: return encode_32s<plain::encode_weighted_above_min<Search, 31> >(type, in, weights, count, out);
    case DType::q2_k: return plain::encode_weighted_q2_k<Search>(in, weights, count, out);
    case DType::q3_k: return plain::encode_weighted_q3_k<Search>(in, weights, count, out);
    case DType::q4_k: return plain::encode_weighted_q4_k<Search>(in, weights, count, out);
    default: return plain::encode_weighted_q5_k<Search>(in, weights, count, out);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(encode_weighted_on_target);

void encode_weighted(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_weighted_on_target)(type, in, weights, count, out);
}

}  // namespace ballast::kernels
#endif
