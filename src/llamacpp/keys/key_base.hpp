// The keys that most architectures share.
#pragma once

#include "llamacpp/keys/key_formulas.hpp"
#include "llamacpp/keys/key_rows.hpp"

namespace ballast::llamacpp::keys {

using enum KeyKind;
using enum KeyNeed;

// A row whose value is a formula, and one that writes keys itself.
constexpr KeyRow row_of(std::string_view key, KeyKind kind, Json (*value)(const HyperModel&), KeyNeed need = optional) {
  return {key, kind, {}, need, {}, value, nullptr};
}
constexpr KeyRow written_by(void (*write)(HyperModel&)) { return {{}, {}, {}, {}, {}, nullptr, write}; }

inline constexpr KeyRow kFileType = row_of("general.file_type", count, formulas::file_type);
inline constexpr KeyRow kBlockCount = row_of("block_count", count, formulas::block_count);

// clang-format off
inline constexpr KeyRow kBase[] = {
    kBlockCount,
    {"context_length", count,
     "max_position_embeddings n_ctx n_positions max_length max_sequence_length model_max_length"},
    {"embedding_length", count, "hidden_size n_embd dim"},
    {"feed_forward_length", count_or_counts,
     "prefix_dense_intermediate_size dense_intermediate_size intermediate_size n_inner hidden_dim"},
    {"attention.head_count", count_or_counts, "num_attention_heads n_head n_heads"},
    {"attention.head_count_kv", count_or_counts, "num_key_value_heads n_kv_heads"},
    row_of("attention.causal", boolean, formulas::not_causal),
    written_by(formulas::write_rope_scaling),
    row_of("rope.dimension_sections", list, formulas::rope_sections),
    row_of("rope.freq_base", real, formulas::rope_theta),
    row_of("rope.freq_base_swa", real, formulas::rope_theta_of_windows),
    {"attention.layer_norm_rms_epsilon", real, "rms_norm_eps norm_eps"},
    {"attention.layer_norm_epsilon", real, "layer_norm_eps layer_norm_epsilon norm_epsilon"},
    {"expert_count", count, "num_local_experts num_experts n_routed_experts"},
    {"expert_used_count", count, "num_experts_per_tok num_experts_per_token top_k_experts"},
    {"expert_group_count", count, "n_group"},
    {"expert_group_used_count", count, "topk_group"},
    row_of("expert_gating_func", count, formulas::gating_function),
    {"attention.key_length", count, "head_dim"},
    {"attention.value_length", count, "head_dim"},
    kFileType,
};

inline constexpr KeyRow kLlama[] = {
    {"vocab_size", count, "vocab_size", required},
    row_of("rope.dimension_count", count, formulas::rope_dimensions),
};

inline constexpr KeyRow kGranite[] = {
    {"attention.scale", real, "attention_multiplier", if_true},
    {"embedding_scale", real, "embedding_multiplier", if_true},
    {"residual_scale", real, "residual_multiplier", if_true},
    {"logit_scale", real, "logits_scaling", if_true},
};

inline constexpr KeyRow kDeepstack[] = {row_of("n_deepstack_layers", count, formulas::deepstack_layers)};

inline constexpr KeyRow kPhi3[] = {
    {"context_length", count, "n_positions max_position_embeddings", required},
    row_of("rope.scaling.original_context_length", count, formulas::rope_original_length),
    {"embedding_length", count, "hidden_size n_embd", required},
    {"feed_forward_length", count_or_counts, "intermediate_size", required},
    kBlockCount,
    {"attention.head_count", count_or_counts, "num_attention_heads n_head", required},
    {"attention.head_count_kv", count_or_counts, "num_key_value_heads n_head_kv", required},
    {"attention.layer_norm_rms_epsilon", real, "rms_norm_eps", required},
    row_of("rope.dimension_count", count, formulas::rope_dimensions_phi3),
    row_of("rope.freq_base", real, formulas::rope_theta_required),
    kFileType,
    row_of("attention.sliding_window", count, formulas::window_or_zero),
};
// clang-format on

inline constexpr KeyRow kPooling[] = {written_by(formulas::write_pooling)};

}  // namespace ballast::llamacpp::keys
