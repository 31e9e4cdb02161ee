// What single types of adapters do on the way between a state dict and a file.
#pragma once

#include <string_view>

#include "peft/files/model_state.hpp"
#include "peft/types.hpp"

namespace ballast::peft {

// AdaLoRA: files hold only the ranks of A, B and E that rank_pattern keeps. In a state dict, their names end with the
// adapter's.
void keep_ranks(StateDict& tensors, const AdapterConfig& config, std::string_view adapter = {});

// VB-LoRA with save_only_topk_weights: files hold only the largest logits, as weights. And back.
void keep_largest(StateDict& file, const AdapterConfig& config);
void spread_largest(StateDict& file);

// SHiRA: a state dict does not say which elements the weights belong to. The indices of a random mask are drawn anew,
// as torch draws them; Errc::unsupported for any other mask.
void draw_indices(StateDict& file, const StateDict& state, const AdapterConfig& config);

// Prompt methods: the prompt that comes out of the encoder in a state dict, whose layers are applied if it has any. And
// back: the tensors that an encoder has if it is loaded from such a file.
StateDict prompt_of(const StateDict& state, const PeftType& type, const AdapterConfig& config,
                    std::string_view adapter);
// The embeddings of the encoder whose tensors are called `prefix` and something, after all layers that it has.
Tensor encoded_prompt(const StateDict& state, const std::string& prefix);
std::string_view first_of_encoder(const PeftType& type);  // the table that every encoder of the type has
StateDict encoder_of(const StateDict& file, const PeftType& type, const AdapterConfig& config);

// Adapters that stand beside the base and wrap none of its modules: a prompt encoder, and the classifier of X-LoRA.
void set_prompt(ModelState& model, const StateDict& state, const StateDict& file, const AdapterConfig& config,
                const std::string& adapter);
void set_classifier(ModelState& model, const StateDict& state, const StateDict& file, const PeftType& type);

}  // namespace ballast::peft
