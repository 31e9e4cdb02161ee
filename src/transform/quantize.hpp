// Floating tensors into ggml's blocks, as llama.cpp chooses which.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

Checkpoint quantize(Checkpoint checkpoint, DType type);

}  // namespace ballast
