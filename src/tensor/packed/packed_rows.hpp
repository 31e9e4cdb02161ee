// A matrix whose rows are kept as codes, as the numbers that it stands for: rows of bytes become rows of floats.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <ballast/overflows.hpp>
#include <ballast/tensor.hpp>

#include "tensor/packed/group_numbers.hpp"
#include "tensor/packed/packed_codes.hpp"

namespace ballast {

// An element is ((code - zero) * scale + bias) * factor. Each step that there is rounds to F32, the difference and the
// product then to `rounded`, and the end to `dtype`.
struct PackedRows {
  Tensor packed{};              // the bytes of the codes: whole rows of `row_bytes`, one after the other
  std::uint64_t row_bytes = 0;  // codes.bytes_of(columns), or more
  std::uint64_t columns = 0;
  unsigned rows_in_byte = 1;  // so many rows lie in the same bytes, the first in the low bits; each has `row_bytes`
  PackedCodes codes{};        // of the first of them
  GroupNumbers scale{};
  Boxed<GroupNumbers> zero{}, bias{};
  bool subtracts_bias = false;
  std::optional<DType> rounded{};
  std::optional<float> factor{};
  DType dtype = DType::bf16;
  std::string scheme{};  // for whoever shows a plan
  std::string weight{};  // its name, for errors that are found while it is read
};

// The matrix, [rows, columns], made as it is read. The caller has checked that the numbers are enough for its rows.
Tensor unpacked_rows(PackedRows rows);

}  // namespace ballast
