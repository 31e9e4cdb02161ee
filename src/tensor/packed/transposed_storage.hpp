// Matrices that are decoded in one order of dimensions and given in the other.
//
// Some programs keep the codes of a weight transposed: GPTQ and AWQ lay the codes of all outputs of one input side by
// side, and the weight has a row for each output. Decoding all of the matrix for one row of the result would cost a
// matrix a row. So it is cut into strips of columns, each of which becomes some rows of the result.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ballast/overflows.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

// Some columns of one of the matrices.
struct ColumnStrip {
  std::uint64_t matrix, first_column, columns;
};

// What decodes one strip, for one thread. It may keep what all rows of the strip need.
class StripDecoder {
 public:
  virtual ~StripDecoder() = default;

  // Decodes some rows of the strip into elements, row by row. The first row is a multiple of StripSource::row_unit; so
  // is the end, unless it is that of the matrix.
  virtual Overflows decode(std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out) = 0;
};

// The matrices that are decoded. Several threads may ask for strips at once.
class StripSource {
 public:
  virtual ~StripSource() = default;

  // The first column is a multiple of `column_unit`; so is the end, unless it is that of the matrix.
  virtual std::unique_ptr<StripDecoder> decoder(const ColumnStrip& strip) const = 0;

  std::vector<Tensor> from;  // what they are made of
  std::string scheme;        // for whoever shows a plan
  std::uint64_t matrices = 1, rows = 0, columns = 0;
  std::uint64_t row_unit = 1, column_unit = 1;
  DType dtype = DType::f16;
};

// [columns, rows] for one matrix, or [matrices, columns, rows].
Tensor transposed_strips(std::unique_ptr<const StripSource> source, bool has_several);

}  // namespace ballast
