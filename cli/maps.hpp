// The maps that a command line names: files, or what transformers does when it loads a model.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>

#include "options.hpp"

namespace ballast::cli {

// The checkpoint with the reverse of `map_back` applied, and then `map`. Each is a path, "transformers" for what the
// config.json beside the checkpoint asks for, or "transformers:TYPE"; empty: none.
Checkpoint with_maps(const Session& session, Checkpoint checkpoint, const std::string& map,
                     const std::string& map_back);

bool is_map_of_transformers(const std::string& map);

}  // namespace ballast::cli
