// The values of pairs of tensors compared, streamed, by several threads.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <ballast/diff.hpp>
#include <ballast/tensor.hpp>

#include "kernels/compare.hpp"

namespace ballast {

// Two tensors of one shape.
struct TensorPair {
  std::string_view name;
  Tensor a, b;
};

// The same pair with both tensors in F32, or in F64 if F32 does not hold the numbers of both. Tensors without numbers
// stay as they are.
TensorPair as_numbers(const TensorPair& pair);

// Both tensors of a pair have one dtype. A result for each pair, in order, which does not depend on the threads.
std::vector<kernels::Difference> compare_pairs(std::span<const TensorPair> pairs, const kernels::Closeness& close,
                                               const DiffOptions& options);

}  // namespace ballast
