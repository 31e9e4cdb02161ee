// Values: a convention inside safetensors and GGUF. What stands beside the tensors of a pickle (an epoch, a learning
// rate) goes into the metadata, under "ballast.values", as one JSON object of paths.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

Checkpoint fold_values(Checkpoint checkpoint);

// The inverse. What JSON has no type for comes back as the text that Python would show.
Checkpoint unfold_values(Checkpoint checkpoint);

}  // namespace ballast
