// Values added to values, element by element: contiguous little-endian bytes, each sum rounded to its own type.
#pragma once

#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

// Numbers that have a zero of all zero bits: not the ones that share a byte, nor F8_E8M0, nor bits.
bool can_add(DType dtype) noexcept;

// total += more, as PyTorch adds: integers wrap, booleans are or-ed, the narrow floats are added as F32 and rounded to
// nearest even, complex numbers part by part. Both spans are whole elements, equally many; neither needs to be aligned.
// Owns nothing, so it may be abandoned half-way. Returns the sums that were too large for a narrow float.
Overflows add(DType dtype, std::span<std::byte> total, std::span<const std::byte> more) noexcept;

}  // namespace ballast::kernels
