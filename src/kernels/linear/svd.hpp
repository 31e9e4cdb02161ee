// The largest singular values of a matrix and their vectors, by LAPACK, on the calling thread alone.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ballast::kernels {

// matrix ≈ u · diag(values) · v, all row-major. The vectors of a value of 0 are orthonormal, too.
struct TruncatedSvd {
  std::size_t rank = 0;       // at most the smaller dimension
  std::vector<float> u;       // [rows, rank]
  std::vector<float> values;  // the largest first
  std::vector<float> v;       // [rank, columns]
};

// The result is exact if the smaller dimension is at most 1024. Beyond that, the function iterates a random subspace
// that always begins the same; the result is as near as singular values that follow each other closely allow, and the
// time grows with the rank. All values must be finite. Throws Errc::unsupported if LAPACK gives up.
TruncatedSvd truncated_svd(std::span<const float> matrix, std::size_t rows, std::size_t columns, std::size_t rank);

// All singular values of a [rows, columns] matrix, exactly, the largest first; the matrix is used up.
std::vector<float> singular_values(std::vector<float> matrix, std::size_t rows, std::size_t columns);

// Makes the columns of a [rows, columns] matrix orthonormal; there are fewer columns than rows, or as many.
void make_orthonormal(std::vector<float>& matrix, std::size_t rows, std::size_t columns);

}  // namespace ballast::kernels
