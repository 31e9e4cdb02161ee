// What single types of adapters do to values on the way between a state dict and a file.
#pragma once

#include <string_view>

#include "ops/adapter/types.hpp"

namespace ballast::adapter {

// AdaLoRA: of A, B and E, files hold the ranks that rank_pattern keeps.
void keep_ranks(StateDict& file, const AdapterConfig& config);

// VB-LoRA with save_only_topk_weights: of logits, files hold the largest ones, as weights; and back.
void keep_largest(StateDict& file, const AdapterConfig& config);
void spread_largest(StateDict& file);

// SHiRA: a state dict does not have the places of its weights. Those of a random mask are drawn anew, as torch does it;
// Errc::unsupported for any other.
void draw_indices(StateDict& file, const StateDict& state, const AdapterConfig& config);

// Prompt methods: what a prompt encoder in a state dict comes to. Where it has layers, they are applied.
StateDict prompt_of(const StateDict& state, const PeftType& type, std::string_view adapter);

}  // namespace ballast::adapter
