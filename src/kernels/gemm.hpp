// Products of small matrices of floats with large ones, by BLAS, on the calling thread alone.
#pragma once

#include <cstddef>

namespace ballast::kernels {

// Row-major, each row `stride` floats after the one before.
struct MatrixView {
  const float* values;
  std::size_t rows, columns, stride;
  bool transposed = false;  // rows and columns as they lie in memory; the product takes them the other way round
};

// c = alpha * a * b + beta * c, of as many rows and columns as the product has. No dimension is over 2^31 - 1.
void multiply(const MatrixView& a, const MatrixView& b, float alpha, float beta, float* c, std::size_t c_stride);

// c = a * b, summed from the first product to the last, each one and each sum rounded: the same bits everywhere.
// Neither is transposed.
void multiply_in_order(const MatrixView& a, const MatrixView& b, float* c, std::size_t c_stride) noexcept;

}  // namespace ballast::kernels
