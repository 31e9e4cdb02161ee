// What GGUF has no place for, before anything is made a GGUF.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

// dequantize() with a note, but for the experts of gpt-oss: ggml has their blocks.
Checkpoint without_packing(Checkpoint checkpoint);

}  // namespace ballast
