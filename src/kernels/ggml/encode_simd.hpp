// The vector code behind encode_blocks, a family of block types a file, compiled once for each instruction set and
// chosen when the program runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

// What is encoded instead of a value that is not finite.
inline float made_finite(float value) {
  constexpr float kMost = std::numeric_limits<float>::max();
  return std::isnan(value) ? 0 : std::clamp(value, -kMost, kMost);
}

// The largest magnitude; NaN counts as the largest. `count` is a multiple of 8.
float farthest(const float* in, std::size_t count);

// The sum of the squares of each block, added in their order. Blocks have 32 or 256 elements.
void sum_squares(const float* in, std::size_t elements, std::size_t blocks, float* sums);

// The square of each element, plus the number of its block. `count` elements are whole blocks.
void add_squares(const float* in, const float* spreads, std::size_t elements, std::size_t count, float* out);

// Multiplies each weight by the root of the same.
void multiply_by_magnitude(const float* in, const float* spreads, std::size_t elements, std::size_t count,
                           float* weights);

// Encodes `count` whole blocks of finite elements. The type belongs to the family. The weights of the elements are null
// if the type takes none, or if it has its own without an importance matrix.
using EncodeFamily = void (*)(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);

// For any type: the plain loops, for processors without vectors and for blocks that fill no vector.
void encode_plainly(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);

void encode_classic(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);
void encode_from_min(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);
void encode_around_zero(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);
void encode_small(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);
void encode_weighted(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);
void encode_grid(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);
void encode_ternary(DType type, const float* in, const float* weights, std::size_t count, std::uint8_t* out);

}  // namespace ballast::kernels
