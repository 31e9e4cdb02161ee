#include "peft/symmetric.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ballast::peft {
namespace {

constexpr int kMostSweeps = 30;  // six are usual, and the last ones change nothing

// Four sums beside each other, so that a product does not wait for the one before.
double dot(std::span<const float> a, std::span<const float> b) {
  std::array<double, 4> sums = {};
  std::size_t i = 0;
  for (; i + 4 <= a.size(); i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += double{a[i + k]} * b[i + k];
  }
  for (; i < a.size(); ++i) sums[0] += double{a[i]} * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Rotates rows and columns p and q of m so that m(p, q) becomes 0, and the rows of `turned` with them.
void rotate(Symmetric& m, Symmetric* turned, std::size_t p, std::size_t q) {
  const double theta = (m(q, q) - m(p, p)) / (2 * m(p, q));
  const double t = std::copysign(1, theta) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1), s = t * c;
  for (std::size_t k = 0; k < m.size; ++k) {
    const double a = m(k, p), b = m(k, q);
    m(k, p) = c * a - s * b;
    m(k, q) = s * a + c * b;
  }
  for (std::size_t k = 0; k < m.size; ++k) {
    const double a = m(p, k), b = m(q, k);
    m(p, k) = c * a - s * b;
    m(q, k) = s * a + c * b;
  }
  for (std::size_t k = 0; turned != nullptr && k < m.size; ++k) {
    const double a = (*turned)(p, k), b = (*turned)(q, k);
    (*turned)(p, k) = c * a - s * b;
    (*turned)(q, k) = s * a + c * b;
  }
}

// Jacobi's method: the diagonal becomes the eigenvalues, and row i of `turned`, if it is given, their vectors.
void diagonalize(Symmetric& m, Symmetric* turned) {
  double scale = 0;
  for (std::size_t i = 0; i < m.size; ++i) scale = std::max(scale, std::fabs(m(i, i)));
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool is_done = true;
    for (std::size_t p = 0; p + 1 < m.size; ++p) {
      for (std::size_t q = p + 1; q < m.size; ++q) {
        if (std::fabs(m(p, q)) <= 1e-12 * scale) continue;
        is_done = false;
        rotate(m, turned, p, q);
      }
    }
    if (is_done) return;
  }
}

}  // namespace

Symmetric gram_of_rows(const Matrix& m) {
  Symmetric gram{m.rows(), std::vector<double>(m.rows() * m.rows())};
  for (std::size_t i = 0; i < gram.size; ++i) {
    for (std::size_t j = i; j < gram.size; ++j) gram(i, j) = gram(j, i) = dot(m.row(i), m.row(j));
  }
  return gram;
}

// With a = U'·D·U, the product has the eigenvalues of √D·U·b·U'·√D, which is symmetric.
std::vector<double> product_eigenvalues(const Symmetric& a, const Symmetric& b) {
  const std::size_t size = a.size;
  Symmetric diagonal = a, turned{size, std::vector<double>(size * size)};
  for (std::size_t i = 0; i < size; ++i) turned(i, i) = 1;
  diagonalize(diagonal, &turned);
  for (std::size_t i = 0; i < size; ++i) {
    const double root = std::sqrt(std::max(diagonal(i, i), 0.0));
    for (std::size_t k = 0; k < size; ++k) turned(i, k) *= root;
  }
  Symmetric half{size, std::vector<double>(size * size)}, inner = half;
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < size; ++k) {
      for (std::size_t j = 0; j < size; ++j) half(i, j) += turned(i, k) * b(k, j);
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) {
      for (std::size_t k = 0; k < size; ++k) inner(i, j) += half(i, k) * turned(j, k);
    }
  }
  diagonalize(inner, nullptr);
  std::vector<double> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = inner(i, i);
  return values;
}

}  // namespace ballast::peft
