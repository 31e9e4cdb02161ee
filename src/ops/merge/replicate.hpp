// Layer replication: a base whose layers an adapter uses several times, in another order.
#pragma once

#include "ops/merge/module.hpp"

namespace ballast::merging {

// With layer_replication [[0, 2], [1, 2]], layers 0, 1 and again 1, now called 2. The copies share their tensors.
// Returns whether there are any.
bool replicate_layers(Checkpoint& checkpoint, const Settings& settings);

}  // namespace ballast::merging
