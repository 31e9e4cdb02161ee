// Walks over elements of any numeric type as doubles, a block on the stack at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>

#include "kernels/cast.hpp"

namespace ballast::kernels {

// A multiple of every type's block, and small enough for the first-level cache.
inline constexpr std::size_t kValuesPerBlock = 1024;

// Calls look(const double* values, std::size_t count) for up to kValuesPerBlock elements at a time, in order. The type
// must be one that can be cast to F64.
template <class Look>
void for_each_block(DType dtype, std::span<const std::byte> bytes, Look look) {
  const std::size_t block_elements = info(dtype).block_elements, block_bytes = info(dtype).block_bytes;
  const std::size_t step = kValuesPerBlock / block_elements * block_bytes;
  alignas(64) double values[kValuesPerBlock];
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(step, bytes.size()));
    const std::size_t count = part.size() / block_bytes * block_elements;
    cast(dtype, DType::f64, part, std::as_writable_bytes(std::span(values, count)));
    look(values, count);
    bytes = bytes.subspan(part.size());
  }
}

}  // namespace ballast::kernels
