// What single types of adapters do to values on the way between a state dict and a file.
#pragma once

#include <string_view>

#include "ops/adapter/types.hpp"

namespace ballast::adapter {

// AdaLoRA: of A, B and E, files hold the ranks that rank_pattern keeps. In a state dict, their names end with the
// adapter's.
void keep_ranks(StateDict& tensors, const AdapterConfig& config, std::string_view adapter = {});

// VB-LoRA with save_only_topk_weights: of logits, files hold the largest ones, as weights; and back.
void keep_largest(StateDict& file, const AdapterConfig& config);
void spread_largest(StateDict& file);

// SHiRA: a state dict does not have the places of its weights. Those of a random mask are drawn anew, as torch does it;
// Errc::unsupported for any other.
void draw_indices(StateDict& file, const StateDict& state, const AdapterConfig& config);

// Prompt methods: what a prompt encoder in a state dict comes to. Where it has layers, they are applied. And back: what
// an encoder that was loaded from such a file holds.
StateDict prompt_of(const StateDict& state, const PeftType& type, const AdapterConfig& config,
                    std::string_view adapter);
std::string_view first_of_encoder(const PeftType& type);  // the table that every encoder of the type has
StateDict encoder_of(const StateDict& file, const PeftType& type, const AdapterConfig& config);

}  // namespace ballast::adapter
