// Values that are more than a lookup in config.json, and what some architectures change before their keys are written.
#pragma once

#include <ballast/json.hpp>

#include "llamacpp/keys/key_rows.hpp"

namespace ballast::llamacpp::formulas {

// A formula gives null for a key that is to be left out.
Json block_count(const HyperModel& model);
Json file_type(const HyperModel& model);
Json no(const HyperModel& model);
Json not_causal(const HyperModel& model);  // false, or nothing
Json gating_function(const HyperModel& model);

Json rope_sections(const HyperModel& model);
Json rope_theta(const HyperModel& model);
Json rope_theta_required(const HyperModel& model);
Json rope_theta_of_windows(const HyperModel& model);
Json rope_theta_or_million(const HyperModel& model);
Json rope_none(const HyperModel& model);
Json rope_original_length(const HyperModel& model);
Json rope_dimensions(const HyperModel& model);          // of a whole head
Json rope_dimensions_half(const HyperModel& model);     // a part of a head, half of it if nothing is said
Json rope_dimensions_quarter(const HyperModel& model);  // the same, a quarter
Json rope_dimensions_phi(const HyperModel& model);
Json rope_dimensions_phi3(const HyperModel& model);
Json rope_dimensions_stablelm(const HyperModel& model);
Json rope_dimensions_percent(const HyperModel& model);  // rotary_pct of a head
Json default_sections(const HyperModel& model);
Json tenth_of_mscale(const HyperModel& model);
Json mscale_of_ministral(const HyperModel& model);
Json temperature_of_ministral(const HyperModel& model);

Json four_times_n_embd(const HyperModel& model);
Json four_times_hidden_size(const HyperModel& model);
Json t5_context_length(const HyperModel& model);
Json two_thirds_of_intermediate_size(const HyperModel& model);
Json window_unless_pattern_is_one(const HyperModel& model);
Json window_as_in_the_file(const HyperModel& model);
Json window_or_zero(const HyperModel& model);
Json sliding_layers(const HyperModel& model);

Json falcon_heads(const HyperModel& model);
Json falcon_kv_heads(const HyperModel& model);
Json linear_inner_size(const HyperModel& model);
Json guessing_blocks(const HyperModel& model);
Json guessing_blocks_of_glm(const HyperModel& model);
Json deepstack_layers(const HyperModel& model);
Json leading_dense_blocks(const HyperModel& model);
Json mla_key_length(const HyperModel& model);
Json mla_value_length(const HyperModel& model);
Json mla_key_length_of_head(const HyperModel& model);
Json minicpm_residual_scale(const HyperModel& model);
Json minicpm_logit_scale(const HyperModel& model);
Json lfm2_feed_forward_length(const HyperModel& model);
Json lfm2_causal(const HyperModel& model);
Json mamba_conv(const HyperModel& model);
Json mamba_inner(const HyperModel& model);
Json mamba_state(const HyperModel& model);
Json mamba_time_step_rank(const HyperModel& model);
Json mamba_epsilon(const HyperModel& model);
Json mamba_has_norms(const HyperModel& model);
Json class_labels(const HyperModel& model);

// These write keys.
void write_rope_scaling(HyperModel& model);
void write_pooling(HyperModel& model);
void write_reranker(HyperModel& model);

// These change values, or refuse the model.
void prepare_llama(HyperModel& model);
void prepare_granite(HyperModel& model);
void prepare_gemma3(HyperModel& model);
void prepare_gpt2(HyperModel& model);
void prepare_bert(HyperModel& model);
void prepare_nomic(HyperModel& model);
void prepare_ministral(HyperModel& model);
void prepare_deepseek2(HyperModel& model);
void prepare_guessing(HyperModel& model);  // blocks that guess ahead come behind the others
void prepare_qwen3next(HyperModel& model);
void prepare_command_r(HyperModel& model);
void prepare_lfm2(HyperModel& model);

}  // namespace ballast::llamacpp::formulas
