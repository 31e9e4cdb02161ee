// Compares the values of two tensors of one type, element by element: `diff` prints the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <ballast/dtype.hpp>

#include "kernels/distance.hpp"

namespace ballast::kernels {

struct Difference {
  std::uint64_t count = 0;      // elements compared; blocks, for ggml types
  std::uint64_t different = 0;  // elements whose bits differ, or that are not close
  std::optional<std::uint64_t> first_different;

  // These are about numbers that differ; both parts of a complex number count. They are zero if only the sign of a zero
  // or the payload of a NaN differs.
  std::uint64_t nan_mismatch = 0;       // parts that are NaN on one side only; the members below leave them out
  double max_abs = 0;                   // Inf if one number is infinite and the other is not the same infinity
  std::optional<std::uint64_t> max_at;  // the first element that is so far apart
  double max_rel = 0;                   // |a - b| / max(|a|, |b|)

  // These are about all numbers that are finite on both sides, equal ones too.
  std::uint64_t finite_count = 0;
  PairSums sums;

  bool equal() const noexcept { return different == 0; }

  // Adds the result for the elements that follow these; `next` counted its elements from 0.
  void merge(const Difference& next) noexcept;
};

// Whether elements of the type are numbers, or have parts that are.
bool has_numbers(DType dtype) noexcept;

// Compares further elements: whole blocks of `dtype`, the same number on both sides. Equal bytes cost a memcmp and a
// sum of squares. Any type can be compared; types that are not numbers are compared by their bits alone. If `close` is
// not exact, numbers that are close are the same, and so are two NaNs. The function owns nothing, so it may be
// abandoned half-way.
void accumulate(Difference& difference, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                const Closeness& close = {}) noexcept;

}  // namespace ballast::kernels
