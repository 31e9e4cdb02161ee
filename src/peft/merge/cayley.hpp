// Rotations made of skew-symmetric matrices, which are square and in doubles.
#pragma once

#include "peft/matrix.hpp"

namespace ballast::peft {

// The skew-symmetric matrix that has this upper triangle, row by row.
std::vector<double> skew_symmetric(std::span<const float> triangle, std::uint64_t size);

// COFT keeps a rotation small: values whose norm is larger than `most` are shortened to it.
void constrain(std::span<double> skew, double most);

// (I - S) (I + S)^-1, which is a rotation.
Matrix cayley(std::span<const double> skew, std::uint64_t size);

// I + 2S + 2S^2 + ... + 2S^(terms-2) + S^(terms-1): nearly the same if S is small. In floats, as in PEFT.
Matrix neumann(std::span<const double> skew, std::uint64_t size, std::uint64_t terms);

// The transpose would not do for a series: a series that was cut is not a rotation. Errc::malformed if there is none.
Matrix inverse(const Matrix& matrix);

}  // namespace ballast::peft
