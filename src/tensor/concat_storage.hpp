// Tensors put together along a dimension, read where they lie.
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// The parts have one dtype and, except along `axis`, one shape; there is at least one. Throws Errc::mismatch if they
// differ. Lazy.
Tensor concatenated(std::vector<Tensor> parts, std::size_t axis);

}  // namespace ballast
