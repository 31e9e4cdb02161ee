#include "kernels/linear/svd.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "kernels/linear/blas.hpp"
#include "kernels/linear/gemm.hpp"

namespace ballast::kernels {
namespace {

constexpr std::size_t kExact = 1024;
constexpr std::size_t kMore = 16;  // dimensions of the subspace beyond the rank
constexpr int kIterations = 4;

int as_int(std::size_t size) { return static_cast<int>(size); }

void check(int info) {
  if (info != 0) throw Error(Errc::unsupported, "the singular values of a matrix could not be found");
}

// Calls LAPACK once to ask how much room it needs, and once with that room.
template <class Call>
void with_room(const Call& call) {
  float wanted = 0;
  check(call(&wanted, -1));
  std::vector<float> room(static_cast<std::size_t>(wanted) + 1);
  check(call(room.data(), as_int(room.size())));
}

// The full decomposition: rank is the smaller dimension.
TruncatedSvd whole_svd(std::vector<float> matrix, std::size_t rows, std::size_t columns) {
  TruncatedSvd svd;
  svd.rank = std::min(rows, columns);
  svd.u.resize(rows * svd.rank);
  svd.values.resize(svd.rank);
  svd.v.resize(svd.rank * columns);
  std::vector<int> integers(8 * svd.rank);
  // The transposed matrix is v' · diag · u'; in memory these are v and u.
  const int m = as_int(columns), n = as_int(rows), rank = as_int(svd.rank);
  with_room([&](float* work, int size) {
    int info = 0;
    lapack().sgesdd("S", &m, &n, matrix.data(), &m, svd.values.data(), svd.v.data(), &m, svd.u.data(), &rank, work,
                    &size, integers.data(), &info);
    return info;
  });
  return svd;
}

TruncatedSvd subspace_svd(const MatrixView& matrix, std::size_t rank) {
  const std::size_t rows = matrix.rows, columns = matrix.columns, width = rank + kMore;
  MatrixView turned = matrix;
  turned.transposed = true;
  std::vector<float> left(rows * width), right(columns * width);
  std::mt19937 random(0);  // the seed is always the same
  std::normal_distribution<float> normal;
  for (float& value : right) value = normal(random);
  for (int i = 0; i <= kIterations; ++i) {
    multiply(matrix, {right.data(), columns, width, width}, 1, 0, left.data(), width);
    make_orthonormal(left, rows, width);
    if (i == kIterations) break;
    multiply(turned, {left.data(), rows, width, width}, 1, 0, right.data(), width);
    make_orthonormal(right, columns, width);
  }

  std::vector<float> small(width * columns);
  multiply({left.data(), rows, width, width, true}, matrix, 1, 0, small.data(), columns);
  TruncatedSvd inner = whole_svd(std::move(small), width, columns);
  TruncatedSvd svd{inner.rank, std::vector<float>(rows * inner.rank), std::move(inner.values), std::move(inner.v)};
  multiply({left.data(), rows, width, width}, {inner.u.data(), width, inner.rank, inner.rank}, 1, 0, svd.u.data(),
           inner.rank);
  return svd;
}

void cut(TruncatedSvd& svd, std::size_t rows, std::size_t columns, std::size_t rank) {
  if (rank >= svd.rank) return;
  std::vector<float> u(rows * rank);
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(svd.u.begin() + static_cast<std::ptrdiff_t>(row * svd.rank), rank,
                u.begin() + static_cast<std::ptrdiff_t>(row * rank));
  svd.u = std::move(u);
  svd.values.resize(rank);
  svd.v.resize(rank * columns);
  svd.rank = rank;
}

}  // namespace

void make_orthonormal(std::vector<float>& matrix, std::size_t rows, std::size_t columns) {
  const int m = as_int(columns), n = as_int(rows);
  std::vector<float> factors(columns);
  with_room([&](float* work, int size) {
    int info = 0;
    lapack().sgelqf(&m, &n, matrix.data(), &m, factors.data(), work, &size, &info);
    return info;
  });
  with_room([&](float* work, int size) {
    int info = 0;
    lapack().sorglq(&m, &n, &m, matrix.data(), &m, factors.data(), work, &size, &info);
    return info;
  });
}

std::vector<float> singular_values(std::vector<float> matrix, std::size_t rows, std::size_t columns) {
  std::vector<float> values(std::min(rows, columns));
  if (values.empty()) return values;
  std::vector<int> integers(8 * values.size());
  const int m = as_int(columns), n = as_int(rows), one = 1;
  float nothing = 0;
  with_room([&](float* work, int size) {
    int info = 0;
    lapack().sgesdd("N", &m, &n, matrix.data(), &m, values.data(), &nothing, &one, &nothing, &one, work, &size,
                    integers.data(), &info);
    return info;
  });
  return values;
}

TruncatedSvd truncated_svd(std::span<const float> matrix, std::size_t rows, std::size_t columns, std::size_t rank) {
  const std::size_t smaller = std::min(rows, columns);
  if (smaller == 0 || rank == 0) return {};
  const bool is_exact = smaller <= kExact || rank + kMore >= smaller;
  TruncatedSvd svd = is_exact ? whole_svd({matrix.begin(), matrix.end()}, rows, columns)
                              : subspace_svd({matrix.data(), rows, columns, columns}, rank);
  cut(svd, rows, columns, rank);
  return svd;
}

}  // namespace ballast::kernels
