// Matrices that are kept in one order of dimensions and given in the other.
//
// Some programs keep the codes of a weight transposed: GPTQ and AWQ lay the codes of all outputs of one input side by
// side, and the weight has a row for each output. Reading all of the matrix for one row of the result would cost a
// matrix a row. So it is cut into strips of columns, each of which becomes some rows of the result.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ballast/tensor.hpp>

#include "tensor/packed/group_numbers.hpp"

namespace ballast {

// Matrices that lie one below the other and are read a part of one of them at a time, by several threads at once.
struct MatricesInParts {
  std::vector<Tensor> from;  // what they are made of
  DType dtype = DType::u8;
  std::uint64_t matrices = 1, rows = 0, columns = 0;  // rows of one of them
  std::uint64_t column_unit = 1;                      // the first column of a part is a multiple
  // Gives the elements of a part, row by row. The first row counts from the first matrix on.
  std::function<void(const MatrixPart& part, std::span<std::byte> out)> read;
};

// [matrices * columns, rows], contiguous and made as it is read.
Tensor transposed(MatricesInParts matrices);

// A matrix [matrices * rows, columns].
Tensor transposed(const Tensor& matrix, std::uint64_t matrices = 1);

// Some columns of some rows of a matrix.
Tensor part_of(const Tensor& matrix, const MatrixPart& part);

}  // namespace ballast
