// The names of the files that belong to a model, beside its weights.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast {

struct SidecarName {
  enum class Kind : std::uint8_t {
    plain,
    configuration,  // may name code
    quantization,   // says how the weights are quantized, and nothing else
  };
  std::string_view pattern;  // a glob over the whole name
  std::uint64_t most_bytes;  // no such file of a real model comes near it
  Kind kind = Kind::plain;
};

// The row for a file of this name ("config.json", "1_Pooling/config.json"); null if such files stay where they are.
const SidecarName* sidecar_name(std::string_view name);

// Whether a folder of this name has files that belong to the model: "1_Pooling".
bool is_sidecar_folder(std::string_view name);

// Weights of any program, and what lists them.
bool is_weights_name(std::string_view name);

}  // namespace ballast
