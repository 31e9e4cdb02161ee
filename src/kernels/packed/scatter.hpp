// Values put where the bits of a mask are set, zeros where they are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

std::uint64_t count_bits(std::span<const std::byte> mask) noexcept;

// So many bytes behind the last value are read, and not used.
inline constexpr std::size_t kScatterSlack = 16;

// Element i of `out` is the next value if bit i of the mask is set, the lowest bit of a byte first. An element has
// `width` bytes. `mask` has a bit for each element; those behind the last one are not set. No pointer needs to be
// aligned.
void scatter(std::span<const std::byte> mask, const std::byte* values, std::size_t width,
             std::span<std::byte> out) noexcept;

}  // namespace ballast::kernels
