// Products of small matrices of floats with large ones, by BLAS, on the calling thread alone.
#pragma once

#include <cstddef>

namespace ballast::kernels {

// Row-major; each row begins `stride` floats after the row before it.
struct MatrixView {
  const float* values;
  std::size_t rows, columns, stride;
  bool transposed = false;  // `rows` and `columns` describe the memory; the product uses the transpose
};

// c = alpha * a * b + beta * c; c has as many rows and columns as the product. No dimension is over 2^31 - 1.
void multiply(const MatrixView& a, const MatrixView& b, float alpha, float beta, float* c, std::size_t c_stride);

// c = a * b. Products are summed from the first to the last, and each product and each sum is rounded, so the bits are
// the same on every machine. Neither matrix may be transposed.
void multiply_in_order(const MatrixView& a, const MatrixView& b, float* c, std::size_t c_stride) noexcept;

}  // namespace ballast::kernels
