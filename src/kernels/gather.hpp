// Gathering a strided tensor into contiguous bytes: what a permuted, sliced or expanded view needs to be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

// Fills `out` with elements number first_element, first_element + 1, … of the view, counted in row-major order.
//
// `base` points at element 0. Strides are in bytes, and may be 0 or negative. `shape` may have any rank, and its
// product fits 64 bits; out.size() is a multiple of element_bytes, and the elements asked for exist and do not overlap
// `out`. An element is any number of bytes; 1, 2, 4, 8 and 16 are fast. Owns nothing, so it may be abandoned half-way.
//
// A transposed view is read tile by tile as far as `out` reaches across it, so ask for many rows at once.
void gather(std::span<std::byte> out, const std::byte* base, std::span<const std::uint64_t> shape,
            std::span<const std::int64_t> byte_strides, std::uint64_t first_element,
            std::uint64_t element_bytes) noexcept;

}  // namespace ballast::kernels
