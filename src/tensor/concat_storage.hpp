// Tensors joined along a dimension, without a copy: each is read from its own storage.
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// The parts have one dtype and, except along `axis`, one shape; there is at least one. Throws Errc::mismatch if they
// differ. Lazy.
Tensor concatenated(std::vector<Tensor> parts, std::size_t axis);

}  // namespace ballast
