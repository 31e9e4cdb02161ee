// Walks over elements of any numeric type as doubles or floats, a block on the stack at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>

#include "kernels/cast.hpp"

namespace ballast::kernels {

// A multiple of every type's block, and small enough for the first-level cache.
inline constexpr std::size_t kValuesPerBlock = 1024;

// `to` is the dtype of Number.
template <class Number, class Look>
void for_each_block_of(DType dtype, DType to, std::span<const std::byte> bytes, Look look) {
  const std::size_t block_elements = info(dtype).block_elements, block_bytes = info(dtype).block_bytes;
  const std::size_t step = kValuesPerBlock / block_elements * block_bytes;
  alignas(64) Number values[kValuesPerBlock];
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(step, bytes.size()));
    const std::size_t count = part.size() / block_bytes * block_elements;
    cast(dtype, to, part, std::as_writable_bytes(std::span(values, count)));
    look(values, count);
    bytes = bytes.subspan(part.size());
  }
}

// Calls look(const double* values, std::size_t count) for up to kValuesPerBlock elements at a time, in order. The type
// must be one that can be cast to F64.
template <class Look>
void for_each_block(DType dtype, std::span<const std::byte> bytes, Look look) {
  for_each_block_of<double>(dtype, DType::f64, bytes, look);
}

// Whether F32 holds every value of a numeric type.
constexpr bool fits_f32(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64: return false;
    default: return true;
  }
}

// The same with as narrow numbers as hold the values: calls look(const float*, std::size_t), or look(const double*,
// std::size_t) if the type does not fit F32.
template <class Look>
void for_each_narrow_block(DType dtype, std::span<const std::byte> bytes, Look look) {
  if (!fits_f32(dtype)) return for_each_block(dtype, bytes, look);
  for_each_block_of<float>(dtype, DType::f32, bytes, look);
}

}  // namespace ballast::kernels
