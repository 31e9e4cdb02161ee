// Comparing the values of two tensors of one type, element by element: what `diff` prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

struct Difference {
  std::uint64_t count = 0;      // elements compared; blocks, for ggml types
  std::uint64_t different = 0;  // whose bits differ; with a tolerance, those that are farther apart than that
  std::optional<std::uint64_t> first_different;

  // Of numbers that are different; complex ones count with both of their parts. Zero where nothing differs but the sign
  // of a zero or the payload of a NaN.
  std::uint64_t nan_mismatch = 0;  // parts that are NaN on one side only; they take no part in the rest
  double max_abs = 0;              // Inf where one is infinite and the other is not the same
  double max_rel = 0;              // |a - b| / max(|a|, |b|)

  bool equal() const noexcept { return different == 0; }

  // What comes after: `next` counted its elements from 0.
  void merge(const Difference& next) noexcept;
};

// Compares further elements: whole blocks of `dtype`, equally many on both sides. Equal bytes cost a memcmp. Any type
// can be compared; those that are not numbers by their bits alone. With a tolerance, numbers that are at most so far
// apart are the same, and so are two NaNs. Owns nothing, so it may be abandoned half-way.
void accumulate(Difference& difference, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                double tolerance = 0) noexcept;

}  // namespace ballast::kernels
