// Casts between element types: contiguous little-endian bytes in, contiguous little-endian bytes out.
//
// Any floating, integer or boolean type is cast to F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E4M3FNUZ or F8_E5M2FNUZ:
//  * A value is rounded to nearest, ties to even, once: F64 goes to BF16 directly, never through F32.
//  * A value that is too large becomes Inf in F64, F32, F16, BF16, and the largest number in the F8 types. The programs
//    that make F8 weights (torchao, compressed-tensors, NVIDIA's and ONNX's casts) saturate, as 448 is nearer to 500
//    than NaN is, while a bare cast of PyTorch or ml_dtypes gives NaN, and Inf in F8_E5M2. An infinite value stays
//    infinite, or becomes NaN if the target has no Inf.
//  * NaN stays NaN, keeps its sign and the upper bits of its payload if there is room, and becomes quiet. Only BF16 to
//    F32 leaves a signalling NaN as it is: that cast is a shift, in PyTorch and ggml too.
//  * The FNUZ types have no negative zero: it becomes zero.
// The caller's thread is in the default floating-point environment (nearest, subnormals kept).
#pragma once

#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

bool can_cast(DType from, DType to) noexcept;

// `in` is a whole number of blocks of `from`, `out` has as many elements of `to`, can_cast(from, to) is true, and the
// two spans do not overlap. Neither needs to be aligned. The function owns nothing, so it may be abandoned half-way. It
// returns the finite values that were too large; this costs next to nothing if there are none.
Overflows cast(DType from, DType to, std::span<const std::byte> in, std::span<std::byte> out) noexcept;

// Finds the overflows of cast() without casting.
Overflows find_overflows(DType from, DType to, std::span<const std::byte> in) noexcept;

}  // namespace ballast::kernels
