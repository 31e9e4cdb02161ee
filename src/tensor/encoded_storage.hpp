// Values that are encoded into ggml's blocks as they are read.
#pragma once

#include <ballast/tensor.hpp>

namespace ballast {

// Throws Errc::unsupported for a type that cannot be encoded, and for a tensor whose rows are not whole blocks.
Tensor encoded(const Tensor& tensor, DType type);

}  // namespace ballast
