#include "kernels/ggml/encode_plain.hpp"
#include "kernels/ggml/encode_simd.hpp"

namespace ballast::kernels {

void encode_plainly(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out) {
  if (weights != nullptr) return plain::weighted_encoder(type)(in, weights, count, out);
  const auto encode = plain::encoder(type);
  for (; count > 0; --count, in += info(type).block_elements, out += info(type).block_bytes) encode(in, out);
}

}  // namespace ballast::kernels
