// Whether the tensors of a model are those that its metadata promise. llama.cpp opens no file in which they are not, or
// opens it and answers nonsense.
#pragma once

#include <ballast/checkpoint.hpp>

#include "llamacpp/config/model_config.hpp"

namespace ballast::llamacpp {

// The model has llama.cpp's names; `tokens` is the number of its tokens. Errc::malformed with a sentence about the
// first contradiction.
void check_model(const Checkpoint& model, const ModelConfig& config, std::uint64_t tokens);

}  // namespace ballast::llamacpp
