// Casts between element types: contiguous little-endian bytes in, contiguous little-endian bytes out.
//
// Any floating, integer or boolean type is cast to F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E4M3FNUZ or F8_E5M2FNUZ:
//  * rounded to nearest, ties to even, once: F64 goes to BF16 directly, never through F32;
//  * too large becomes Inf in F64, F32, F16, BF16, and the largest number in the F8 types: whoever makes F8 weights
//    (torchao, compressed-tensors, NVIDIA's and ONNX's casts) saturates, as 448 is nearer to 500 than NaN is, while a
//    bare cast of PyTorch or ml_dtypes gives NaN, and Inf in F8_E5M2. What is infinite stays so, or becomes NaN where
//    the target has no Inf;
//  * NaN stays NaN, keeps its sign and the upper bits of its payload where there is room, and becomes quiet. Only
//    BF16 to F32 leaves a signalling one as it is: that cast is a shift, in PyTorch and ggml too;
//  * the FNUZ types have no negative zero: it becomes zero.
// The caller's thread is in the default floating-point environment (nearest, subnormals kept).
#pragma once

#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

bool can_cast(DType from, DType to) noexcept;

// `in` is a whole number of blocks of `from`, `out` has as many elements of `to`, can_cast(from, to) is true, and the
// two do not overlap. Neither needs to be aligned. Owns nothing, so it may be abandoned half-way. Returns the finite
// values that were too large; it costs next to nothing where there are none.
Overflows cast(DType from, DType to, std::span<const std::byte> in, std::span<std::byte> out) noexcept;

// Those alone.
Overflows find_overflows(DType from, DType to, std::span<const std::byte> in) noexcept;

}  // namespace ballast::kernels
