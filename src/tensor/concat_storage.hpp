// Tensors put together along a dimension, read where they lie.
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// Of one dtype and, but for `axis`, one shape; at least one. Throws Errc::mismatch where they are not. Lazy.
Tensor concatenated(std::vector<Tensor> parts, std::size_t axis);

}  // namespace ballast
