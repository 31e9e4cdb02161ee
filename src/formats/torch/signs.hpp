// Conjugate and negative views: torch keeps them as a flag, and other programs need the values.
#pragma once

#include <ballast/tensor.hpp>

namespace ballast::torch {

// Returns the tensor itself if nothing has to be done, else one whose values are computed as they are read.
Tensor with_signs(Tensor tensor, bool is_conjugate, bool is_negative);

}  // namespace ballast::torch
