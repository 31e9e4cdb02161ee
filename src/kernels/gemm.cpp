#include "kernels/gemm.hpp"

#include <algorithm>

#include "kernels/blas.hpp"

namespace ballast::kernels {
namespace {

int as_int(std::size_t size) { return static_cast<int>(size); }

}  // namespace

void multiply(const MatrixView& a, const MatrixView& b, float alpha, float beta, float* c, std::size_t c_stride) {
  const std::size_t rows = a.transposed ? a.columns : a.rows, inner = a.transposed ? a.rows : a.columns;
  const std::size_t columns = b.transposed ? b.rows : b.columns;
  if (rows == 0 || columns == 0) return;
  const auto order = [](const MatrixView& matrix) { return matrix.transposed ? Blas::kTransposed : Blas::kAsItIs; };
  const auto stride = [](const MatrixView& matrix) { return as_int(std::max<std::size_t>(matrix.stride, 1)); };
  blas().sgemm(Blas::kRowMajor, order(a), order(b), as_int(rows), as_int(columns), as_int(inner), alpha, a.values,
               stride(a), b.values, stride(b), beta, c, as_int(c_stride));
}

void multiply_in_order(const MatrixView& a, const MatrixView& b, float* c, std::size_t c_stride) noexcept {
  for (std::size_t i = 0; i < a.rows; ++i) {
    float* row = c + i * c_stride;
    std::fill_n(row, b.columns, 0.0F);
    for (std::size_t k = 0; k < a.columns; ++k) {
      const float factor = a.values[i * a.stride + k];
      const float* terms = b.values + k * b.stride;
      for (std::size_t j = 0; j < b.columns; ++j) row[j] += factor * terms[j];
    }
  }
}

}  // namespace ballast::kernels
