#include "ops/merge/matrix.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

#include "core/overflow_counter.hpp"
#include "kernels/cast.hpp"

namespace ballast::merging {

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

// Gauss elimination with pivots, of a^T X^T = b^T.
std::vector<double> solve_right(std::span<const double> a, std::span<const double> b, std::uint64_t size) {
  const std::uint64_t n = size;
  std::vector<double> left(n * n), right(n * n);
  for (std::uint64_t i = 0; i < n; ++i) {
    for (std::uint64_t j = 0; j < n; ++j) {
      left[j * n + i] = a[i * n + j];
      right[j * n + i] = b[i * n + j];
    }
  }
  for (std::uint64_t k = 0; k < n; ++k) {
    std::uint64_t pivot = k;
    for (std::uint64_t i = k + 1; i < n; ++i) {
      if (std::abs(left[i * n + k]) > std::abs(left[pivot * n + k])) pivot = i;
    }
    if (left[pivot * n + k] == 0) throw Error(Errc::malformed, "has a rotation that cannot be computed");
    if (pivot != k) {
      std::swap_ranges(&left[k * n], &left[k * n] + n, &left[pivot * n]);
      std::swap_ranges(&right[k * n], &right[k * n] + n, &right[pivot * n]);
    }
    for (std::uint64_t i = 0; i < n; ++i) {
      const double factor = i == k ? 0 : left[i * n + k] / left[k * n + k];
      if (factor == 0) continue;
      for (std::uint64_t j = k; j < n; ++j) left[i * n + j] -= factor * left[k * n + j];
      for (std::uint64_t j = 0; j < n; ++j) right[i * n + j] -= factor * right[k * n + j];
    }
  }
  std::vector<double> result(n * n);
  for (std::uint64_t i = 0; i < n; ++i) {
    for (std::uint64_t j = 0; j < n; ++j) result[j * n + i] = right[i * n + j] / left[i * n + i];
  }
  return result;
}

}  // namespace ballast::merging
