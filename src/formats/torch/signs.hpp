// Conjugate and negative views: torch keeps them as a flag, and other programs need the values.
#pragma once

#include <ballast/tensor.hpp>

namespace ballast::torch {

// The tensor itself where nothing is to be done. Computed as it is read.
Tensor with_signs(Tensor tensor, bool is_conjugate, bool is_negative);

}  // namespace ballast::torch
