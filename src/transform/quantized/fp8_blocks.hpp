// A matrix as FP8 E4M3 with a scale for each block of 128 x 128 values, made as it is read.
#pragma once

#include <cstdint>

#include <ballast/tensor.hpp>

namespace ballast {

inline constexpr std::uint64_t kFp8Block = 128;

// The value of a weight is its code times the scale of its block. Blocks at the right and at the bottom may be smaller.
struct Fp8Blocks {
  Tensor codes;   // F8_E4M3, of the shape of the matrix
  Tensor scales;  // F32
};

// `matrix` is floating or of ggml's blocks, has two dimensions, and is not empty. Nothing is read by this call. Both
// tensors share what they know of the scales, so whoever reads the scales first reads the matrix once for them, and
// once for the codes. A value that is not finite is Errc::unsupported when it is read.
Fp8Blocks fp8_blocks(const Tensor& matrix);

}  // namespace ballast
