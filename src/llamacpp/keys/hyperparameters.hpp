// A model's sizes and constants as llama.cpp wants them: the keys "llama.block_count" and so on.
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/typed_metadata.hpp>

#include "llamacpp/config/model_config.hpp"
#include "llamacpp/model_folder.hpp"

namespace ballast::llamacpp {

// Adds the keys of the architecture in the converter's order, general.file_type among them, and
// general.quantization_version at the end. `file_type` is llama.cpp's number of the type that most tensors get; plain
// types become MXFP4's number if the model is stored in MXFP4. Throws Errc::malformed with the key's name if a value is
// missing or of the wrong kind, and Errc::unsupported for a model that llama.cpp could not run.
void add_hyperparameters(const ModelFolder& folder, const ModelConfig& config, std::uint32_t file_type,
                         TypedMetadata& out, std::vector<Note>& notes);

// The keys that the converter writes before all others but general.architecture. add_general() calls it.
void add_early_keys(const ModelConfig& config, TypedMetadata& out);

}  // namespace ballast::llamacpp
