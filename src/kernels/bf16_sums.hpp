// The sums and extremes of a block of BF16 values, without a cast: most weights are BF16, and looking at them should
// take little longer than reading them.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/block_sums.hpp"

namespace ballast::kernels {

inline constexpr std::size_t kBf16Block = 4096;

// Sums of kBf16Block values, with `sum` and `squares` those of the values themselves. The square of a BF16 is an exact
// F32; 32 values or squares are added up as F32 before they go into an F64, so about eight digits of a mean or a
// standard deviation are right. The bits do not depend on the machine.
//
// Empty if a value is not finite, if squares might leave the range of F32, or if the mean is so far from 0 that the
// difference squares - sum²/n would lose digits: block_sums() can take such blocks.
std::optional<BlockSums> bf16_sums(const std::byte* codes) noexcept;

}  // namespace ballast::kernels
