#include "kernels/linear/spectrum.hpp"

#include <algorithm>
#include <random>

#include "kernels/linear/gemm.hpp"
#include "kernels/linear/svd.hpp"

namespace ballast::kernels {
namespace {

constexpr std::size_t kSmall = 512;
constexpr std::size_t kWholeElements = std::size_t{4} << 20;
constexpr std::size_t kMore = 16;  // dimensions of the subspace beyond kSpectrumSize
constexpr int kIterations = 2;

// The singular values of a symmetric matrix without negative eigenvalues are its eigenvalues.
std::vector<double> eigenvalues(const std::vector<float>& gram, std::size_t size) {
  const TruncatedSvd svd = truncated_svd(gram, size, size, size);
  return {svd.values.begin(), svd.values.end()};
}

// gram += m' · m for a [rows, columns] matrix.
void add_gram(std::vector<float>& gram, const float* m, std::size_t rows, std::size_t columns) {
  multiply({m, rows, columns, columns, true}, {m, rows, columns, columns}, 1, 1, gram.data(), columns);
}

Spectrum by_columns(std::size_t columns, const RowPanels& panels) {
  std::vector<float> gram(columns * columns);
  panels([&](std::span<const float> rows) { add_gram(gram, rows.data(), rows.size() / columns, columns); });
  return {eigenvalues(gram, columns), true};
}

Spectrum by_rows(std::size_t rows, std::size_t columns, const RowPanels& panels) {
  std::vector<float> whole, gram(rows * rows);
  whole.reserve(rows * columns);
  panels([&](std::span<const float> panel) { whole.insert(whole.end(), panel.begin(), panel.end()); });
  const MatrixView matrix{whole.data(), rows, columns, columns};
  MatrixView turned = matrix;
  turned.transposed = true;
  multiply(matrix, turned, 1, 0, gram.data(), rows);
  return {eigenvalues(gram, rows), true};
}

// Calls look(panel, product) with each panel and its product with `basis`.
template <class Look>
void for_each_product(const RowPanels& panels, const MatrixView& basis, Look look) {
  std::vector<float> product;
  panels([&](std::span<const float> values) {
    const MatrixView panel{values.data(), values.size() / basis.rows, basis.rows, basis.rows};
    product.resize(panel.rows * basis.columns);
    multiply(panel, basis, 1, 0, product.data(), basis.columns);
    look(panel, MatrixView{product.data(), panel.rows, basis.columns, basis.columns});
  });
}

Spectrum by_subspace(std::size_t rows, std::size_t columns, const RowPanels& panels) {
  const std::size_t width = std::min({rows, columns, kSpectrumSize + kMore});
  std::vector<float> basis(columns * width), next(basis.size());
  std::mt19937 random(0);  // the seed is always the same
  std::normal_distribution<float> normal;
  for (float& value : basis) value = normal(random);
  for (int i = 0; i < kIterations; ++i) {
    make_orthonormal(basis, columns, width);
    std::ranges::fill(next, 0.0F);
    for_each_product(panels, {basis.data(), columns, width, width}, [&](MatrixView panel, const MatrixView& product) {
      panel.transposed = true;
      multiply(panel, product, 1, 1, next.data(), width);
    });
    basis.swap(next);
  }
  make_orthonormal(basis, columns, width);
  std::vector<float> gram(width * width);
  for_each_product(panels, {basis.data(), columns, width, width}, [&](const MatrixView&, const MatrixView& product) {
    add_gram(gram, product.values, product.rows, width);
  });
  Spectrum found{eigenvalues(gram, width), width == rows || width == columns};
  if (!found.is_complete) found.squares.resize(kSpectrumSize);
  return found;
}

}  // namespace

Spectrum spectrum(std::size_t rows, std::size_t columns, const RowPanels& panels) {
  if (columns <= kSmall) return by_columns(columns, panels);
  if (rows <= kSmall && rows <= kWholeElements / columns) return by_rows(rows, columns, panels);
  return by_subspace(rows, columns, panels);
}

}  // namespace ballast::kernels
