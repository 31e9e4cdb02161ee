// layer_replication: a model that has some of its layers several times.
#pragma once

#include <ballast/adapter.hpp>

namespace ballast::adapter {

// [[0, 4], [2, 5]] makes the layers 0, 1, 2, 3, 2, 3, 4. The base as it is where the configuration does not ask for it.
StateDict replicate_layers(const StateDict& base, const AdapterConfig& config);

}  // namespace ballast::adapter
