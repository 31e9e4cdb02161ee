// Casts between element types: contiguous little-endian bytes in, contiguous little-endian bytes out.
//
// Any floating, integer or boolean type is cast to F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E4M3FNUZ or F8_E5M2FNUZ:
//  * rounded to nearest, ties to even, once: F64 goes to BF16 directly, never through F32;
//  * too large becomes Inf, or NaN where the target has no Inf, as in PyTorch;
//  * NaN stays NaN, keeps its sign and the upper bits of its payload where there is room, and becomes quiet. Only
//    BF16 to F32 leaves a signalling one as it is: that cast is a shift, in PyTorch and ggml too;
//  * the FNUZ types have no negative zero: it becomes zero.
// The caller's thread is in the default floating-point environment (nearest, subnormals kept).
#pragma once

#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

bool can_cast(DType from, DType to) noexcept;

// `in` is a whole number of blocks of `from`, `out` has as many elements of `to`, can_cast(from, to) is true, and the
// two do not overlap. Neither needs to be aligned. Owns nothing, so it may be abandoned half-way.
void cast(DType from, DType to, std::span<const std::byte> in, std::span<std::byte> out) noexcept;

}  // namespace ballast::kernels
