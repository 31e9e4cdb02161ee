// densify() for some of the composites of a checkpoint.
#pragma once

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

namespace ballast {

// Only torch's quantized tensors; sparse tensors stay as their parts.
Checkpoint densify_quantized(Checkpoint checkpoint, const Limits& limits);

}  // namespace ballast
