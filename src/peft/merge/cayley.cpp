#include "peft/merge/cayley.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

namespace ballast::peft {
namespace {

Matrix to_matrix(std::span<const double> values, std::uint64_t size) {
  return {{size, size}, std::vector<float>(values.begin(), values.end())};
}

// X with X a = b, all square, by Gaussian elimination with pivots: a^T X^T = b^T.
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
    if (left[pivot * n + k] == 0) throw Error(Errc::malformed, "the adapter has a rotation that cannot be computed");
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

}  // namespace

std::vector<double> skew_symmetric(std::span<const float> triangle, std::uint64_t size) {
  std::vector<double> result(size * size);
  auto from = triangle.begin();
  for (std::uint64_t i = 0; i < size; ++i) {
    for (std::uint64_t j = i + 1; j < size; ++j, ++from) {
      result[i * size + j] = *from;
      result[j * size + i] = -static_cast<double>(*from);
    }
  }
  return result;
}

void constrain(std::span<double> skew, double most) {
  double sum = 0;
  for (const double value : skew) sum += value * value;
  const double norm = std::sqrt(sum);
  if (norm <= most) return;
  for (double& value : skew) value *= most / norm;
}

Matrix cayley(std::span<const double> skew, std::uint64_t size) {
  std::vector<double> plus(skew.begin(), skew.end()), minus(size * size);
  for (std::size_t i = 0; i < minus.size(); ++i) minus[i] = -plus[i];
  for (std::uint64_t i = 0; i < size; ++i) {
    plus[i * size + i] += 1;
    minus[i * size + i] += 1;
  }
  return to_matrix(solve_right(plus, minus, size), size);
}

Matrix neumann(std::span<const double> skew_values, std::uint64_t size, std::uint64_t terms) {
  const Matrix skew = to_matrix(skew_values, size);
  Matrix result({skew.rows(), skew.rows()}), power = skew;
  for (std::uint64_t i = 0; i < skew.rows(); ++i) result(i, i) = 1;
  const auto add = [&](float factor) {
    for (std::size_t i = 0; i < result.values().size(); ++i) result.values()[i] += factor * power.values()[i];
  };
  if (terms > 1) add(2);
  if (terms <= 2) return result;
  power = product(power, skew);
  add(2);
  for (std::uint64_t term = 3; term + 1 < terms; ++term) {
    power = product(power, skew);
    add(2);
  }
  power = product(power, skew);
  add(1);
  return result;
}

Matrix inverse(const Matrix& matrix) {
  const std::uint64_t size = matrix.rows();
  std::vector<double> one(size * size);
  for (std::uint64_t i = 0; i < size; ++i) one[i * size + i] = 1;
  return to_matrix(solve_right(std::vector<double>(matrix.values().begin(), matrix.values().end()), one, size), size);
}

}  // namespace ballast::peft
