// How far two blocks of BF16 values are apart, in half the time that distance.hpp takes: most weights are BF16, and
// comparing them should take little longer than reading them.
#pragma once

#include <cstddef>

#include "kernels/distance.hpp"

namespace ballast::kernels {

inline constexpr std::size_t kBf16DistanceBlock = 1024;

// measure() of kBf16DistanceBlock values that are not close if they differ at all. The product of two BF16 is an exact
// F32; 16 of them are added up as F32 before they go into an F64, so about eight digits of the sums are right. The bits
// do not depend on the machine.
//
// False, and nothing of the result means anything, if the block may hold a larger distance than distance.max_abs, if a
// value is not finite, or if products might leave the range of F32: measure() takes such blocks. Else max_abs stays as
// it is, and max_rel is exact.
bool measure_bf16(BlockDistance& distance, const bfloat16* a, const bfloat16* b) noexcept;

// The sum of the squares of kBf16DistanceBlock values, as measure_bf16() adds them up. False under the same conditions.
bool square_bf16(double& squares, const bfloat16* values) noexcept;

}  // namespace ballast::kernels
