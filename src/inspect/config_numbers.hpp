// The sizes of a model, by the names that a config.json and the metadata of a GGUF have for them.
#pragma once

#include <ballast/json.hpp>
#include <ballast/model_info.hpp>
#include <ballast/typed_metadata.hpp>

namespace ballast {

// Values of other kinds than expected count as missing: nothing is refused here.
void read_config_numbers(const Json& config, ModelInfo& model);
void read_gguf_numbers(const TypedMetadata& metadata, ModelInfo& model);

}  // namespace ballast
