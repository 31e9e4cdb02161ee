// The formula of PackedRows, for elements that follow each other.
#pragma once

#include <optional>
#include <span>

#include "tensor/packed/packed_rows.hpp"

namespace ballast {

// The numbers that some elements need, as many sets as the formula has.
struct RowNumbers {
  RowNumbers(const PackedRows& rows, const MatrixPart& part, std::span<const std::uint32_t> groups);

  LoadedNumbers scale;
  std::optional<LoadedNumbers> zero{}, bias{};
};

// Makes a part of the matrix. `in` begins with the bytes of its codes; from row to row, or from rows that share bytes
// to the next ones, these are rows.row_bytes apart. If all numbers are flat, a row may go on in the rows that follow
// it. `codes` are those of the rows that share bytes.
Overflows unpack_part(const PackedRows& rows, std::span<const PackedCodes> codes, const RowNumbers& numbers,
                      const MatrixPart& part, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace ballast
