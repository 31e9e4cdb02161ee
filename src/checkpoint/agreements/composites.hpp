// Tensors in parts inside safetensors, by agreement: the metadata say what the parts make up.
//
// "ballast.composites" holds a JSON array of {"name", "layout", "shape", "parts"}, and for quantized tensors "dtype"
// and "scale" and "zero_point", or "axis". Integers that safetensors has no dtype for are stored as plain integers of
// the same width. unfold(fold(checkpoint)) is the checkpoint.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

Checkpoint fold_composites(Checkpoint checkpoint);

// Metadata that does not fit the tensors is left as it is, with a note.
Checkpoint unfold_composites(Checkpoint checkpoint);

}  // namespace ballast
