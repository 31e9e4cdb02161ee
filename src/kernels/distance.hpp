// How far two blocks of numbers are apart, in vector code that is compiled once for each instruction set and chosen
// when the program runs. The sums are doubles in eight lanes that are added up in one fixed order, so their bits do not
// depend on the machine.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <ballast/float16.hpp>

namespace ballast::kernels {

// What counts as equal, as NumPy has it: |a - b| <= atol + rtol * |b|. Both are 0 or more.
struct Closeness {
  double atol = 0, rtol = 0;

  bool is_exact() const noexcept { return atol == 0 && rtol == 0; }
};

// Sums over pairs of numbers.
struct PairSums {
  double squares_a = 0, squares_b = 0, products = 0;
  double squares = 0;  // of a - b

  bool is_finite() const noexcept { return std::isfinite(squares_a + squares_b + products + squares); }
  void add(const PairSums& other) noexcept {
    squares_a += other.squares_a;
    squares_b += other.squares_b;
    products += other.products;
    squares += other.squares;
  }
};

struct BlockDistance {
  PairSums sums;
  std::uint64_t beyond = 0;  // pairs that are not close
  double max_abs = 0;        // the largest |a - b| of these pairs
  double max_rel = 0;        // the largest |a - b| / max(|a|, |b|) of these pairs; or the number that was there before
};

inline constexpr std::size_t kDistanceLanes = 8;

// `count` is a multiple of kDistanceLanes; fill up with zeros. The pointers need no alignment. If the sums are not
// finite, nothing of the result means anything: a number is not finite, or its square is too large.
void measure(BlockDistance& distance, const bfloat16* a, const bfloat16* b, std::size_t count,
             const Closeness& close) noexcept;
void measure(BlockDistance& distance, const float* a, const float* b, std::size_t count,
             const Closeness& close) noexcept;
void measure(BlockDistance& distance, const double* a, const double* b, std::size_t count,
             const Closeness& close) noexcept;

// The sum of squares, as measure() has it for both sides if they are equal.
double sum_of_squares(const bfloat16* values, std::size_t count) noexcept;
double sum_of_squares(const float* values, std::size_t count) noexcept;
double sum_of_squares(const double* values, std::size_t count) noexcept;

// How many of `count` elements of 1, 2, 4 or 8 bytes differ in their bits.
std::uint64_t count_unequal(const std::byte* a, const std::byte* b, std::size_t count, std::size_t size) noexcept;

}  // namespace ballast::kernels
