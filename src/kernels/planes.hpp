// Byte planes: the first bytes of all elements, then the second bytes of all elements, and so on.
//
// The exponents of weights are much alike and their mantissas are not, so the exponents compress once they are
// separate. A sign is as random as a mantissa, and it stands before the exponent, whose last bit it pushes into the
// next byte. After a rotation by one bit, the first byte of BF16 and F32 is all exponent.
#pragma once

#include <cstddef>
#include <span>

namespace ballast::kernels {

// Plane k is byte k of each element, and lies behind plane k - 1. Both spans have the same number of whole elements, do
// not overlap, and may begin at any address. The functions own nothing, so they may be abandoned half-way.
void split_planes(std::span<const std::byte> elements, std::size_t element_bytes, std::span<std::byte> planes) noexcept;
void join_planes(std::span<const std::byte> planes, std::size_t element_bytes, std::span<std::byte> elements) noexcept;

// Rotate every element by a bit, in planes, in place: left, so that the highest bit of an element becomes its lowest,
// and back.
void rotate_left_in_planes(std::span<std::byte> planes, std::size_t element_bytes) noexcept;
void rotate_right_in_planes(std::span<std::byte> planes, std::size_t element_bytes) noexcept;

}  // namespace ballast::kernels
