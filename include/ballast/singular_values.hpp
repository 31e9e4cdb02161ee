// Singular values: how much of a matrix lies in how few directions.
//
// singular_values() reads the matrix once, or three times, and needs BLAS and LAPACK, which are loaded at run time. It
// may be called from several threads at once, and works on the calling thread alone. The result owns everything in it.
//
// Example:
//   const SingularValues found = singular_values(open("model.safetensors").at("wte.weight"));
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ballast/progress.hpp>
#include <ballast/tensor.hpp>

namespace ballast {

struct SingularValues {
  std::vector<double> values;  // the largest first
  bool is_complete = false;    // there are no others; else the last of these are a little too small
  std::uint64_t count = 0;     // how many there are: the smaller dimension

  // The sum of all squares / the largest square; 0 for a matrix of zeros.
  double stable_rank = 0;
  std::optional<std::uint64_t> of_90, of_99;  // how many hold 90 % and 99 % of the sum; nothing if more than are known
};

// All of them if the smaller dimension is at most 4096 and the matrix has at most 2^26 elements, which are in memory
// meanwhile, as F32; else the 128 largest, in 1200 bytes for each column. Throws Errc::unsupported for anything but a
// matrix of at most 2^17 columns whose values are real and finite, and if LAPACK is not there.
SingularValues singular_values(const Tensor& matrix, const Progress& progress = {});

}  // namespace ballast
