// Aliases: an agreement inside safetensors. A tensor that shares its bytes with another is left out of the file, and
// the metadata say `removed name -> kept name`. An entry counts only if its key is not a tensor and not "format", and
// its value is a tensor.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

// Gives the removed names back, after the others, as the same tensors.
Checkpoint unfold_aliases(Checkpoint checkpoint);

// The inverse: removes the names whose tensor is kept under another name, and says so in the metadata. An alias becomes
// a tensor of its own if its kept tensor is gone or no longer the same, or if the metadata have its name already.
Checkpoint fold_aliases(Checkpoint checkpoint);

// Makes aliases where there were none: of several names for the same values, all but the first become aliases.
Checkpoint alias_same_tensors(Checkpoint checkpoint);

}  // namespace ballast
