// Statistics of a tensor's values, block by block: `stats` prints them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <ballast/dtype.hpp>

#include "kernels/constant_rows.hpp"

namespace ballast::kernels {

inline constexpr std::uint64_t kNoElement = std::numeric_limits<std::uint64_t>::max();

// The moments of the finite values, as F64: integers beyond 2^53 are rounded. NaN and Inf are only counted.
struct Moments {
  std::uint64_t count = 0;  // all elements
  std::uint64_t nan_count = 0;
  std::uint64_t inf_count = 0;
  std::uint64_t zero_count = 0;
  double min = std::numeric_limits<double>::infinity();  // above max if there is no finite value
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double m2 = 0;                         // the sum of squared distances from the mean
  double magnitudes = 0;                 // the sum of |value|
  std::uint64_t first_nan = kNoElement;  // the number of the element, counted from the first that was added
  std::uint64_t first_inf = kNoElement;

  std::uint64_t finite_count() const noexcept { return count - nan_count - inf_count; }
  double variance() const noexcept { return finite_count() == 0 ? 0 : m2 / static_cast<double>(finite_count()); }

  // The sum of squares.
  double squares() const noexcept { return m2 + static_cast<double>(finite_count()) * mean * mean; }

  // The moments of both together; `next` comes behind. Merging the same parts in the same order gives the same bits.
  void merge(const Moments& next) noexcept;
};

// Whether a type has statistics: floating, integer and boolean types do.
bool has_stats(DType dtype) noexcept;

// Adds a whole number of blocks, to `rows` as well if it is not null. The function owns nothing, so it may be abandoned
// half-way; `moments` and `rows` are then useless.
void accumulate(Moments& moments, DType dtype, std::span<const std::byte> bytes, ConstantRows* rows = nullptr) noexcept;

// How many finite values lie outside of [low, high].
std::uint64_t count_outside(double low, double high, DType dtype, std::span<const std::byte> bytes) noexcept;

// Counts the values of [low, high] in bins of equal width; the last bin includes `high`. Other values, and NaN, are
// left out. Both ends are finite; if they are equal, or too close to be divided, everything goes into the first bin.
void histogram(std::span<std::uint64_t> bins, double low, double high, DType dtype,
               std::span<const std::byte> bytes) noexcept;

}  // namespace ballast::kernels
