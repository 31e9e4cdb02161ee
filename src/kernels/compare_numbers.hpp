// Compares a block of numbers, for kernels/compare: the extremes and the sums of their distances.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/compare.hpp"

namespace ballast::kernels {

// What an element consists of: a complex number has two parts.
struct NumberType {
  DType number;
  std::size_t parts = 1;
};

// Adds up to kValuesPerBlock numbers that are not all equal; they begin at element difference.count. If `close` is not
// exact, counts the elements that are not close, too.
void compare_numbers(Difference& difference, const NumberType& type, std::span<const std::byte> a,
                     std::span<const std::byte> b, const Closeness& close) noexcept;

// The same for bytes that are equal on both sides.
void add_equal_numbers(Difference& difference, DType number, std::span<const std::byte> bytes) noexcept;

}  // namespace ballast::kernels
