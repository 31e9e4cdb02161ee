// ModelConfig: a model's config.json, as llama.cpp's converter sees it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <ballast/json.hpp>

#include "llamacpp/config/model_classes.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

struct ModelConfig {
  // With the defaults and conversions of transformers' classes, and the language model's part merged into the root.
  Json values;
  Json raw;                   // as the file has it
  std::string class_name;     // "LlamaForCausalLM"; the language model's, if the file says it
  std::string architecture;   // "llama", general.architecture; empty if the class is not known
  bool has_defaults = false;  // there is a class for the file's model_type, and it takes the file
  // Blocks behind the others that guess several tokens ahead, where only the tensors' names tell how many there are.
  std::uint64_t guessing_blocks = 0;

  const Json* find(std::string_view key) const { return values.find(key); }
  // The first of the keys that is there, even if its value is null. `keys` has a space between two.
  const Json* find_first(std::string_view keys) const;

  // These throw Errc::malformed with the key if the value is missing or of another kind.
  std::uint64_t count(std::string_view keys) const;  // a whole number below 2^32
  double number(std::string_view keys) const;
};

// Throws Errc::not_found if the folder has no config.json, Errc::malformed if it says nothing about a model, and
// Errc::unsupported for a class that needs more than the folder has.
ModelConfig read_model_config(const ModelFolder& folder);
// The same, of a config.json that was read before. The folder's name may tell the type of the model.
ModelConfig make_model_config(const Json& raw, const std::string& folder_name);

// Sets guessing_blocks from the names that the tensors have in the checkpoint: "mtp.layers.0.…".
void count_guessing_blocks(ModelConfig& config, std::span<const std::string_view> tensor_names);

// The parameters of rotary positions: rope_parameters or rope_scaling, with those that stand in the root. An object.
Json rope_parameters(const ModelConfig& config);
// Those of the layers that see everything, if there are several kinds of layers.
const Json& of_full_attention(const Json& rope_parameters);

// The first of the keys that `values` has, and null.
const Json* find_first(const Json& values, std::string_view keys);

}  // namespace ballast::llamacpp
