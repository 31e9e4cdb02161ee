// Gathers a strided tensor into contiguous bytes, so that a permuted, sliced or expanded view can be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

// Outputs of at least this many bytes are written around the cache. Measured with a last-level cache of 32 MiB:
// streaming is even or slower up to 4 MiB, 1.0 to 1.3 times as fast here, and 1.3 to 1.8 times far above.
inline constexpr std::size_t kStreamGatherFromBytes = std::size_t{8} << 20;

// Fills `out` with elements number first_element, first_element + 1, … of the view, counted in row-major order.
//
// `base` points at element 0. Strides are in bytes, and may be 0 or negative. `shape` may have any rank, and its
// product fits 64 bits; out.size() is a multiple of element_bytes, and the elements asked for exist and do not overlap
// `out`. An element is any number of bytes; 1, 2, 4, 8 and 16 are fast. The function owns nothing, so it may be
// abandoned half-way.
//
// A transposed view is read tile by tile as far as `out` reaches across it, so ask for many rows at once.
void gather(std::span<std::byte> out, const std::byte* base, std::span<const std::uint64_t> shape,
            std::span<const std::int64_t> byte_strides, std::uint64_t first_element,
            std::uint64_t element_bytes) noexcept;

}  // namespace ballast::kernels
