// Conversions: what transformers does to the weights of published checkpoints when it loads them, as maps: experts are
// stacked, projections fused, old names replaced. Back, they make of transformers' weights what was published.
//
// The maps are data of the library, one for each model_type of config.json; docs/maps.md lists them. The functions may
// be called from several threads at once. The tensors that they return share the storages of those that they are given.
//
// Example:
//   Checkpoint model = with_conversions(open("Mixtral-8x7B-v0.1/"), "auto");
//   model.at("model.layers.0.mlp.experts.gate_up_proj");  // [8, 28672, 4096], read from 16 tensors of the files
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>
#include <ballast/weight_map.hpp>

namespace ballast {

// The values of model_type that have a map, sorted.
std::vector<std::string_view> types_with_conversions();

// The map of a type. If `experts` is not 0, every layer with experts must have that many. Errc::invalid_argument if the
// type has none, with a list of those that have one.
WeightMap conversions_of(std::string_view model_type, std::uint64_t experts = 0);

// What the config.json beside a checkpoint says: its model_type, or that of its text_config, if there is a map for it.
// Errc::not_found if there is no such file, Errc::unsupported if there is no map.
std::string conversion_type(const Checkpoint& checkpoint, const OpenOptions& options = {});

// The tensors as transformers has them, and as they are published. `model_type` is "auto" for what config.json says;
// then nothing is done if there is no such file, or no map. If config.json is of this type, its number of experts must
// be there. On the way there, names lose what wrappers of training put into them first ("module.", "_orig_mod.").
// Errors are those of apply(), and notes say what was done.
Checkpoint with_conversions(Checkpoint checkpoint, std::string_view model_type, const OpenOptions& options = {});
Checkpoint without_conversions(Checkpoint checkpoint, std::string_view model_type, const OpenOptions& options = {});

}  // namespace ballast
