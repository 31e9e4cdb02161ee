// The tensors of a GGUF that no checkpoint has: factors of the rotary embedding, computed from config.json.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ballast/tensor.hpp>

#include "llamacpp/config/model_config.hpp"

namespace ballast::llamacpp {

// rope_freqs for a "llama3" scaling, rope_factors_long and rope_factors_short for a "longrope"; empty for the others.
// Errc::malformed if config.json has no such numbers, or too many or too few of them.
std::vector<std::pair<std::string, Tensor>> rope_tensors(const ModelConfig& config);

}  // namespace ballast::llamacpp
