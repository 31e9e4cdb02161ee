// The order in which tensors lie in their files: a disk reads on faster than it jumps.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// The numbers of the tensors, by the first byte that each of them comes from; those that come from memory first.
std::vector<std::size_t> in_file_order(std::span<const Tensor> tensors);

}  // namespace ballast
