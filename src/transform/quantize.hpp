// Encodes floating tensors into ggml's blocks, with llama.cpp's rules for which tensors get which type.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

// Whether casts and encoding change it: integers stay as they are.
bool is_real(const Tensor& tensor);

Checkpoint quantize(Checkpoint checkpoint, DType type);

}  // namespace ballast
