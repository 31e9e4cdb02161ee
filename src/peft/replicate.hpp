// layer_replication: a base whose layers a model has several times, or in another order.
#pragma once

#include <ballast/adapter.hpp>

namespace ballast::peft {

// [[0, 4], [2, 5]] makes the layers 0, 1, 2, 3, 2, 3, 4, which share their tensors. The base itself if the
// configuration does not ask for that. The layers are those that PEFT would replicate ("model.layers.0",
// "bert.encoder.layer.0", "h.0"); if there are none of those, the only list of layers that there is, wherever it lies
// ("decoder.layers.0"). Errc::mismatch if there is no such layer, Errc::unsupported if there are several lists to
// choose from.
StateDict replicate_layers(const StateDict& base, const AdapterConfig& config);

bool has_replicated_layers(const AdapterConfig& config);

}  // namespace ballast::peft
