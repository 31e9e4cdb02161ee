// ggml's blocks in files that have no dtype for them, and the typed metadata that GGUF needs and other files do not
// have.
//
// In safetensors, by agreement: a tensor of blocks is U8 with a row of bytes for each row of elements, and the metadata
// "ballast.gguf" say what it was: a JSON object with the tensors' order, dtypes and shapes and the GGUF's own metadata,
// so that the same GGUF can be made again, byte for byte.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

// Stores raw blocks (convert --raw); the inverse is applied to every checkpoint that is opened.
Checkpoint fold_ggml_blocks(Checkpoint checkpoint);
Checkpoint unfold_ggml_blocks(Checkpoint checkpoint);

// Throws Errc::unsupported, with the ways out, if blocks would have to be stored.
Checkpoint for_safetensors(Checkpoint checkpoint);

// Adds typed metadata: that of the checkpoint, or its metadata as strings.
Checkpoint for_gguf(Checkpoint checkpoint);

}  // namespace ballast
