// Values: an agreement inside safetensors and GGUF. The values beside the tensors of a pickle (an epoch, a learning
// rate) go into the metadata, under "ballast.values", as one JSON object of paths.
#pragma once

#include <ballast/checkpoint.hpp>

namespace ballast {

Checkpoint fold_values(Checkpoint checkpoint);

// The inverse. A value that JSON has no type for comes back as the text that Python would show.
Checkpoint unfold_values(Checkpoint checkpoint);

}  // namespace ballast
