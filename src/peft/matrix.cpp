#include "peft/matrix.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

#include "core/overflow_counter.hpp"
#include "kernels/cast.hpp"

namespace ballast::peft {

Extent extent(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  Extent result{shape[0], 1};
  for (std::size_t i = 1; i < shape.rank(); ++i) result.columns *= shape[i];  // fits: numel does
  return result;
}

std::vector<float> read_floats(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
  if (values.empty()) return values;
  const Tensor floats = tensor.to(DType::f32);
  floats.storage()->prepare({});
  floats.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<std::uint64_t> read_indices(const Tensor& tensor, std::uint64_t end, std::string_view what) {
  std::vector<double> values(static_cast<std::size_t>(tensor.numel()));
  if (!values.empty()) {
    const Tensor wide = tensor.to(DType::f64);
    wide.storage()->prepare({});
    wide.read(0, std::as_writable_bytes(std::span(values)));
  }
  std::vector<std::uint64_t> indices;
  for (const double value : values) {
    if (!(value >= 0 && value < static_cast<double>(end)))  // NaN, too
      throw Error(Errc::malformed, fmt::format("{} has the index {}, but there are {}", what, value, end));
    indices.push_back(static_cast<std::uint64_t>(value));
  }
  return indices;
}

Matrix read_matrix(const Tensor& tensor) { return read_matrix(tensor, extent(tensor.shape())); }

Matrix read_matrix(const Tensor& tensor, Extent extent) { return {extent, read_floats(tensor)}; }

Matrix transposed(const Matrix& matrix) {
  Matrix result({matrix.columns(), matrix.rows()});
  for (std::uint64_t i = 0; i < matrix.rows(); ++i) {
    for (std::uint64_t j = 0; j < matrix.columns(); ++j) result(j, i) = matrix(i, j);
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result({a.rows(), b.columns()});
  kernels::multiply_in_order(a.view(), b.view(), result.values().data(), result.columns());
  return result;
}

double sum_of_squares(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

void round_through(DType dtype, std::span<float> values) {
  if (dtype == DType::f32 || dtype == DType::f64) return;
  const DTypeInfo& type = info(dtype);
  constexpr std::size_t kStep = 4096;
  std::byte rounded[kStep * sizeof(float)];
  for (std::size_t done = 0; done < values.size(); done += kStep) {
    const auto part = values.subspan(done, std::min(kStep, values.size() - done));
    const auto bytes = std::span(rounded).first(part.size() / type.block_elements * type.block_bytes);
    count_overflows(kernels::cast(DType::f32, dtype, std::as_bytes(part), bytes));
    kernels::cast(dtype, DType::f32, bytes, std::as_writable_bytes(part));
  }
}

}  // namespace ballast::peft
