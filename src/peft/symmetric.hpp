// Small symmetric matrices in doubles, and their eigenvalues: without LAPACK, which not every system has.
#pragma once

#include <cstddef>
#include <vector>

#include "peft/matrix.hpp"

namespace ballast::peft {

struct Symmetric {
  std::size_t size = 0;
  std::vector<double> values;  // all of them, row after row
  double& operator()(std::size_t i, std::size_t j) { return values[i * size + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values[i * size + j]; }
};

// m · m'.
Symmetric gram_of_rows(const Matrix& m);

// The eigenvalues of a · b, where neither has a negative one; the order is nobody's business. All values must be
// finite.
std::vector<double> product_eigenvalues(const Symmetric& a, const Symmetric& b);

}  // namespace ballast::peft
