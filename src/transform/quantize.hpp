// Encodes floating tensors into ggml's blocks, with llama.cpp's rules for which tensors get which type.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

Checkpoint quantize(Checkpoint checkpoint, DType type);

}  // namespace ballast
