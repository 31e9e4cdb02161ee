#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_from_min.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_min_inl.hpp"

// The blocks of 256 elements in groups, each with a scale and a min: Q2_K, Q4_K, Q5_K.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void encode_from_min_on_target(DType type, const float* in, const float* weights, std::size_t count,
                               std::uint8_t* out) {
  encode_plainly(type, in, weights, count, out);
}
#else

struct Search : GroupCodes {
  template <class Fit>
  static void fit_from_min(const float* x, const float*, plain::Fits& fits) {
    for (std::size_t g = 0; g < 256 / Fit::kGroup; g += kLanes)
      MinSearches<Fit>(x + g * Fit::kGroup, nullptr).run(g, fits);
  }
};

void encode_from_min_on_target(DType type, const float* in, const float*, std::size_t count, std::uint8_t* out) {
  switch (type) {
    case DType::q2_k: return encode_each<plain::to_q2_k<Search> >(type, in, count, out);
    case DType::q4_k: return encode_each<plain::to_q4_k<Search> >(type, in, count, out);
    default: return encode_each<plain::to_q5_k<Search> >(type, in, count, out);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(encode_from_min_on_target);

void encode_from_min(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(encode_from_min_on_target)(type, in, weights, count, out);
}

}  // namespace ballast::kernels
#endif
