// The order in which tensors lie in their files: reading on is faster for a disk than jumping.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// The numbers of the tensors, sorted by the first byte that each comes from; tensors that come from memory are first.
std::vector<std::size_t> in_file_order(std::span<const Tensor> tensors);

}  // namespace ballast
