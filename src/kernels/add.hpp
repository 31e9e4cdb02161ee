// Adds values to values, element by element. Values are contiguous little-endian bytes; each sum is rounded to its own
// type.
#pragma once

#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

// True for numbers whose zero is all zero bits: not for types that share a byte, nor F8_E8M0, nor bits.
bool can_add(DType dtype) noexcept;

// total += more, as PyTorch adds: integers wrap, booleans are or-ed, the narrow floats are added as F32 and rounded to
// nearest even, complex numbers are added part by part. Both spans have the same number of whole elements; neither
// needs to be aligned. The function owns nothing, so it may be abandoned half-way. It returns the sums that were too
// large for a narrow float.
Overflows add(DType dtype, std::span<std::byte> total, std::span<const std::byte> more) noexcept;

}  // namespace ballast::kernels
