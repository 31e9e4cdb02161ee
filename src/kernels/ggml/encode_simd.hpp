// The vector code behind encode_blocks, a family of block types a file, compiled once for each instruction set and
// chosen when the program runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ballast/dtype.hpp>

// The searches keep vectors in objects, and a vector whose size is known only at run time cannot be kept so. Processors
// with such vectors use their vectors of 128 bits.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

namespace ballast::kernels {

// The largest magnitude; NaN counts as the largest. `count` is a multiple of 8.
float farthest(const float* in, std::size_t count);

// Encodes `count` whole blocks of finite elements. The type belongs to the family.
using EncodeFamily = void (*)(DType type, const float* in, std::size_t count, std::uint8_t* out);

void encode_classic(DType type, const float* in, std::size_t count, std::uint8_t* out);
void encode_from_min(DType type, const float* in, std::size_t count, std::uint8_t* out);
void encode_around_zero(DType type, const float* in, std::size_t count, std::uint8_t* out);
void encode_small(DType type, const float* in, std::size_t count, std::uint8_t* out);

}  // namespace ballast::kernels
