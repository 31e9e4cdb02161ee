// Aliases: a convention inside safetensors. A tensor that shares its bytes with another is left out of the file, and
// the metadata says `removed name -> kept name`. An entry counts only where its key is no tensor and not "format", and
// its value is one.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

// Gives the removed names back, after the others, as the same tensors.
Checkpoint unfold_aliases(Checkpoint checkpoint);

// The inverse: takes out the names whose tensor is kept under another, and says so in the metadata.
// An alias whose kept tensor is gone, or no longer the same, or whose name is taken in the metadata, becomes a tensor
// of its own.
Checkpoint fold_aliases(Checkpoint checkpoint);

// Agrees on aliases where there were none: of several names for the same values, all but the first.
Checkpoint alias_same_tensors(Checkpoint checkpoint);

}  // namespace ballast
