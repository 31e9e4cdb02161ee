#include "kernels/ggml/encode_plain.hpp"
#include "kernels/ggml/encode_simd.hpp"
namespace ballast::kernels {
void encode_ternary(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  plain::weighted_encoder(type)(in, weights, count, out);
}
}
