// Floats to the codes of programs that quantize the weights of a model: FP8 E4M3 with scales, NF4, MXFP4.
//
// The bits are those that the programs give that made the forms: transformers for FP8, bitsandbytes for NF4,
// compressed-tensors for MXFP4. Blocks do not depend on each other. All values are finite; what other values become is
// not said. The caller's thread is in the default floating-point environment (nearest, subnormals kept).
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace ballast::kernels {

// The largest magnitude. It is finite only if all values are.
float largest_magnitude(std::span<const float> values) noexcept;

// What the values of a block are multiplied by, so that the largest becomes 448, the largest number of E4M3. A block of
// zeros keeps its values. The reciprocal, by which a reader multiplies, is never subnormal: processors that take
// subnormal numbers for zeros read it, too.
float fp8_factor(float largest) noexcept;

// A code for each value times `factor`, rounded to nearest, ties to even. As many codes as values.
void to_fp8(std::span<const float> values, float factor, std::span<std::byte> codes) noexcept;

// Blocks of 64 values: two codes a byte, the first in the high bits, and the largest magnitude of each block.
inline constexpr std::size_t kNf4Block = 64;
inline constexpr std::array<float, 16> kNf4Values = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};
void to_nf4(std::span<const float> values, std::span<std::byte> codes) noexcept;
void nf4_scales(std::span<const float> values, std::span<float> scales) noexcept;

// Blocks of 32 values: two codes a byte, the first in the low bits, and the exponent of each block, plus 127. The
// largest magnitude of a block becomes at least 3.5 and less than 7, of which all above 5 is rounded to 6. Near the
// largest float it becomes less than 8, so that 6 is finite.
inline constexpr std::size_t kMxfp4Block = 32;
void to_mxfp4(std::span<const float> values, std::span<std::byte> codes) noexcept;
void mxfp4_scales(std::span<const float> values, std::span<std::byte> scales) noexcept;

}  // namespace ballast::kernels
