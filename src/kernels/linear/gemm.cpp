#include "kernels/linear/gemm.hpp"

#include <algorithm>

#include "kernels/linear/blas.hpp"

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

// Computes a few columns at a time, whose sums stay in registers; the order of each sum stays the same.
void multiply_in_order(const MatrixView& a, const MatrixView& b, float* c, std::size_t c_stride) noexcept {
  constexpr std::size_t kColumns = 32;
  for (std::size_t i = 0; i < a.rows; ++i) {
    const float* factors = a.values + i * a.stride;
    std::size_t j = 0;
    for (; j + kColumns <= b.columns; j += kColumns) {
      float sums[kColumns] = {};
      for (std::size_t k = 0; k < a.columns; ++k) {
        const float* terms = b.values + k * b.stride + j;
        for (std::size_t l = 0; l < kColumns; ++l) sums[l] += factors[k] * terms[l];
      }
      std::copy_n(sums, kColumns, c + i * c_stride + j);
    }
    for (; j < b.columns; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < a.columns; ++k) sum += factors[k] * b.values[k * b.stride + j];
      c[i * c_stride + j] = sum;
    }
  }
}

}  // namespace ballast::kernels
