// Matrix: floats in memory, as many as an adapter has, and not as many as a model has.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/tensor.hpp>

#include "kernels/linear/gemm.hpp"

namespace ballast::peft {

// The rows and columns of a weight as the rules of merging see it: a convolution is a matrix with a row for each
// output, a vector has one column.
struct Extent {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
  Extent transposed() const { return {columns, rows}; }
};
Extent extent(const Shape& shape);

class Matrix {
 public:
  Matrix() = default;
  explicit Matrix(Extent extent) : extent_(extent), values_(extent.rows * extent.columns) {}
  Matrix(Extent extent, std::vector<float> values) : extent_(extent), values_(std::move(values)) {}

  std::uint64_t rows() const { return extent_.rows; }
  std::uint64_t columns() const { return extent_.columns; }
  std::span<float> row(std::uint64_t i) { return std::span(values_).subspan(i * columns(), columns()); }
  std::span<const float> row(std::uint64_t i) const { return std::span(values_).subspan(i * columns(), columns()); }
  float& operator()(std::uint64_t i, std::uint64_t j) { return values_[i * columns() + j]; }
  float operator()(std::uint64_t i, std::uint64_t j) const { return values_[i * columns() + j]; }
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }

  // `count` rows from `first` on, for a product.
  kernels::MatrixView view(std::uint64_t first, std::uint64_t count) const {
    return {values_.data() + first * columns(), count, columns(), columns()};
  }
  kernels::MatrixView view() const { return view(0, rows()); }

 private:
  Extent extent_;
  std::vector<float> values_;
};

// All of a tensor as F32, in the order of its elements.
std::vector<float> read_floats(const Tensor& tensor);
Matrix read_matrix(const Tensor& tensor);
Matrix read_matrix(const Tensor& tensor, Extent extent);  // of as many elements

// All of a tensor as indices, whatever its dtype: old releases wrote floats. Errc::malformed, about `what`, for one
// that is not less than `end`.
std::vector<std::uint64_t> read_indices(const Tensor& tensor, std::uint64_t end, std::string_view what);

Matrix transposed(const Matrix& matrix);
Matrix product(const Matrix& a, const Matrix& b);

double sum_of_squares(std::span<const float> values);

// Each value through `dtype` and back: what is left of it if PEFT keeps it in that dtype.
void round_through(DType dtype, std::span<float> values);

}  // namespace ballast::peft
