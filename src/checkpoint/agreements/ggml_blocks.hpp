// ggml's blocks in files that have no dtype for them, and what GGUF must have that other files have not.
//
// In safetensors, by agreement: a tensor of blocks is U8 with a row of bytes for each row of elements, and the metadata
// "ballast.gguf" say what it was: a JSON object with the tensors' order, dtypes and shapes and the GGUF's own metadata,
// so that the same GGUF comes out again, byte for byte.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

// As raw blocks (convert --raw); its inverse is applied to every checkpoint that is opened.
Checkpoint fold_ggml_blocks(Checkpoint checkpoint);
Checkpoint unfold_ggml_blocks(Checkpoint checkpoint);

// Throws Errc::unsupported, with the ways out, where blocks would have to be stored.
Checkpoint for_safetensors(Checkpoint checkpoint);

// With fields: those of the checkpoint, or its metadata as strings.
Checkpoint for_gguf(Checkpoint checkpoint);

}  // namespace ballast
