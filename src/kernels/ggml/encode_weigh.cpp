#include "kernels/ggml/encode_simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ggml/encode_weigh.cpp"
#include <hwy/foreach_target.h>  // includes this file again for every target
// Included after foreach_target.h, because it depends on the target.
#include "kernels/ggml/encode_inl.hpp"

// Squares and roots of elements, for their weights.
HWY_BEFORE_NAMESPACE();
namespace ballast::kernels {
namespace HWY_NAMESPACE {
namespace {

float plain_sum_of_squares(const float* in, std::size_t count) {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += in[i] * in[i];
  return sum;
}

#if HWY_TARGET == HWY_SCALAR

void sum_squares_on_target(const float* in, std::size_t elements, std::size_t blocks, float* sums) {
  for (std::size_t i = 0; i < blocks; ++i) sums[i] = plain_sum_of_squares(in + i * elements, elements);
}
void add_squares_on_target(const float* in, const float* spreads, std::size_t elements, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = spreads[i / elements] + in[i] * in[i];
}
void multiply_by_magnitude_on_target(const float* in, const float* spreads, std::size_t elements, std::size_t count,
                                     float* weights) {
  for (std::size_t i = 0; i < count; ++i) weights[i] *= std::sqrt(spreads[i / elements] + in[i] * in[i]);
}

#else

// As many blocks at once as there are lanes, because the squares of a block are added in their order.
template <std::size_t kElements>
std::size_t sum_squares_across(const float* in, std::size_t blocks, float* sums) {
  std::size_t done = 0;
  for (; blocks - done >= kLanes; done += kLanes) {
    Floats sum = hn::Zero(F32());
    across_groups<kElements>(in + done * kElements, [&](std::size_t, Floats x) { sum = hn::Add(sum, hn::Mul(x, x)); });
    hn::StoreU(sum, F32(), sums + done);
  }
  return done;
}

void sum_squares_on_target(const float* in, std::size_t elements, std::size_t blocks, float* sums) {
  std::size_t done =
      elements == 32 ? sum_squares_across<32>(in, blocks, sums) : sum_squares_across<256>(in, blocks, sums);
  for (; done < blocks; ++done) sums[done] = plain_sum_of_squares(in + done * elements, elements);
}

HWY_INLINE Floats spread_and_square(const float* in, const float* spreads, std::size_t elements, std::size_t i) {
  const Floats x = load(in + i);
  return hn::Add(all(spreads[i / elements]), hn::Mul(x, x));
}

void add_squares_on_target(const float* in, const float* spreads, std::size_t elements, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; i += kLanes)
    hn::StoreU(spread_and_square(in, spreads, elements, i), F32(), out + i);
}

void multiply_by_magnitude_on_target(const float* in, const float* spreads, std::size_t elements, std::size_t count,
                                     float* weights) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Floats magnitude = hn::Sqrt(spread_and_square(in, spreads, elements, i));
    hn::StoreU(hn::Mul(load(weights + i), magnitude), F32(), weights + i);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ballast::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ballast::kernels {

HWY_EXPORT(sum_squares_on_target);
HWY_EXPORT(add_squares_on_target);
HWY_EXPORT(multiply_by_magnitude_on_target);

void sum_squares(const float* in, std::size_t elements, std::size_t blocks, float* sums) {
  HWY_DYNAMIC_DISPATCH(sum_squares_on_target)(in, elements, blocks, sums);
}
void add_squares(const float* in, const float* spreads, std::size_t elements, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(add_squares_on_target)(in, spreads, elements, count, out);
}
void multiply_by_magnitude(const float* in, const float* spreads, std::size_t elements, std::size_t count,
                           float* weights) {
  HWY_DYNAMIC_DISPATCH(multiply_by_magnitude_on_target)(in, spreads, elements, count, weights);
}

}  // namespace ballast::kernels
#endif
