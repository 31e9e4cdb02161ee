// What GGUF has no place for, before anything is made a GGUF.
#pragma once

#include <cstdint>

#include <ballast/checkpoint.hpp>
#include <ballast/dequantize.hpp>

namespace ballast {

// The experts of gpt-oss are blocks of MXFP4, which ggml has, too.
enum class Blocks : std::uint8_t { stay, too };

Checkpoint dequantize(Checkpoint checkpoint, const DequantizeOptions& options, Blocks blocks);

// dequantize() with a note. Blocks stay for whoever makes ggml's blocks of them; a file that is written has no place
// for those that are still there.
Checkpoint without_packing(Checkpoint checkpoint, Blocks blocks = Blocks::stay);

}  // namespace ballast
