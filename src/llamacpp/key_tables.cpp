// The keys of every architecture, in the order in which llama.cpp's converter writes them.
#include <algorithm>

#include "llamacpp/key_formulas.hpp"
#include "llamacpp/key_rows.hpp"

namespace ballast::llamacpp {
namespace {

using enum KeyKind;
using enum KeyNeed;

// A row whose value is a formula, and one that writes keys itself.
constexpr KeyRow row_of(std::string_view key, KeyKind kind, Json (*value)(const HyperModel&),
                        KeyNeed need = KeyNeed::optional) {
  return {key, kind, {}, need, {}, value, nullptr};
}
constexpr KeyRow written_by(void (*write)(HyperModel&)) { return {{}, {}, {}, {}, {}, nullptr, write}; }

constexpr KeyRow kFileType = row_of("general.file_type", count, formulas::file_type);
constexpr KeyRow kBlockCount = row_of("block_count", count, formulas::block_count);

// clang-format off
constexpr KeyRow kBase[] = {
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

constexpr KeyRow kLlama[] = {
    {"vocab_size", count, "vocab_size", required},
    row_of("rope.dimension_count", count, formulas::rope_dimensions),
};

constexpr KeyRow kPooling[] = {written_by(formulas::write_pooling)};

constexpr KeyRow kMinistral[] = {
    row_of("rope.scaling.yarn_log_multiplier", real, formulas::mscale_of_ministral),
    row_of("attention.temperature_scale", real, formulas::temperature_of_ministral),
};

constexpr KeyRow kGranite[] = {
    {"attention.scale", real, "attention_multiplier", if_true},
    {"embedding_scale", real, "embedding_multiplier", if_true},
    {"residual_scale", real, "residual_multiplier", if_true},
    {"logit_scale", real, "logits_scaling", if_true},
};
constexpr KeyRow kGraniteMoe[] = {
    {"expert_shared_feed_forward_length", count, "shared_intermediate_size", if_true},
};

constexpr KeyRow kQwen3[] = {written_by(formulas::write_pooling), written_by(formulas::write_reranker)};
constexpr KeyRow kQwenMoe[] = {
    {"expert_feed_forward_length", count, "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", count, "shared_expert_intermediate_size"},
};
constexpr KeyRow kQwen3Next[] = {
    row_of("nextn_predict_layers", count, formulas::guessing_blocks),
    {"ssm.conv_kernel", count, "linear_conv_kernel_dim", required},
    {"ssm.state_size", count, "linear_key_head_dim", required},
    {"ssm.group_count", count, "linear_num_key_heads", required},
    {"ssm.time_step_rank", count, "linear_num_value_heads", required},
    row_of("ssm.inner_size", count, formulas::linear_inner_size),
    {"full_attention_interval", count, "full_attention_interval", optional, "4"},
    row_of("rope.dimension_count", count, formulas::rope_dimensions_quarter),
};
constexpr KeyRow kQwen35[] = {row_of("rope.dimension_sections", list, formulas::default_sections)};
constexpr KeyRow kDeepstack[] = {row_of("n_deepstack_layers", count, formulas::deepstack_layers)};

constexpr KeyRow kGemma[] = {
    {"context_length", count, "max_position_embeddings", required},
    {"embedding_length", count, "hidden_size", required},
    kBlockCount,
    {"feed_forward_length", count_or_counts, "intermediate_size", required},
    {"attention.head_count", count_or_counts, "num_attention_heads", required},
    {"attention.head_count_kv", count_or_counts, "num_key_value_heads num_attention_heads", required},
    {"attention.layer_norm_rms_epsilon", real, "rms_norm_eps", required},
    {"attention.key_length", count, "head_dim", required},
    {"attention.value_length", count, "head_dim", required},
    kFileType,
};
constexpr KeyRow kGemma2[] = {
    {"attn_logit_softcapping", real, "attn_logit_softcapping", required},
    {"final_logit_softcapping", real, "final_logit_softcapping", required},
    {"attention.sliding_window", count, "sliding_window", required},
};
constexpr KeyRow kGemma3[] = {
    {"context_length", count, "max_position_embeddings", optional, "131072"},
    {"attention.head_count", count_or_counts, "num_attention_heads", optional, "8"},
    {"attention.layer_norm_rms_epsilon", real, "rms_norm_eps", optional, "1e-6"},
    {"attention.key_length", count, "head_dim", optional, "256"},
    {"attention.value_length", count, "head_dim", optional, "256"},
    row_of("rope.freq_base", real, formulas::rope_theta_or_million),
    {"final_logit_softcapping", real, "final_logit_softcapping", if_true},
    row_of("attention.sliding_window", count, formulas::window_unless_pattern_is_one),
    {"attention.head_count_kv", count_or_counts, "num_key_value_heads", optional, "4"},
};
constexpr KeyRow kGemmaEmbedding[] = {
    row_of("attention.sliding_window", count, formulas::window_as_in_the_file),
    written_by(formulas::write_pooling),
};

constexpr KeyRow kPhi2[] = {
    {"context_length", count, "n_positions max_position_embeddings", required},
    {"embedding_length", count, "hidden_size n_embd", required},
    row_of("feed_forward_length", count, formulas::four_times_hidden_size),
    kBlockCount,
    {"attention.head_count", count, "num_attention_heads n_head", required},
    {"attention.head_count_kv", count, "num_attention_heads n_head", required},
    {"attention.layer_norm_epsilon", real, "layer_norm_epsilon layer_norm_eps", required},
    row_of("rope.dimension_count", count, formulas::rope_dimensions_phi),
    kFileType,
    row_of("tokenizer.ggml.add_bos_token", boolean, formulas::no),
};
constexpr KeyRow kPhi3[] = {
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
constexpr KeyRow kPhiMoe[] = {
    {"expert_used_count", count, "num_experts_per_tok num_experts_per_token", required},
    {"expert_count", count, "num_local_experts num_experts", required},
};

constexpr KeyRow kGpt2[] = {
    kBlockCount,
    {"context_length", count, "n_ctx n_positions", required},
    {"embedding_length", count, "n_embd", required},
    row_of("feed_forward_length", count, formulas::four_times_n_embd),
    {"attention.head_count", count, "n_head", required},
    {"attention.layer_norm_epsilon", real, "layer_norm_epsilon", required},
    kFileType,
};
constexpr KeyRow kGptNeox[] = {
    {"context_length", count, "max_position_embeddings", required},
    {"embedding_length", count, "hidden_size", required},
    kBlockCount,
    {"feed_forward_length", count_or_counts, "intermediate_size", required},
    row_of("rope.dimension_count", count, formulas::rope_dimensions_percent),
    {"attention.head_count", count_or_counts, "num_attention_heads", required},
    {"use_parallel_residual", boolean, "use_parallel_residual", optional, "true"},
    {"attention.layer_norm_epsilon", real, "layer_norm_eps", required},
};
constexpr KeyRow kStarcoder[] = {
    {"context_length", count, "n_positions", required},
    {"embedding_length", count, "n_embd", required},
    row_of("feed_forward_length", count, formulas::four_times_n_embd),
    kBlockCount,
    {"attention.head_count", count_or_counts, "n_head", required},
    {"attention.head_count_kv", count, {}, optional, "1"},
    {"attention.layer_norm_epsilon", real, "layer_norm_epsilon", required},
    kFileType,
};
constexpr KeyRow kFalcon[] = {
    {"context_length", count, {}, optional, "2048"},
    {"tensor_data_layout", text, {}, optional, "\"jploski\""},
    {"embedding_length", count, "hidden_size", required},
    row_of("feed_forward_length", count, formulas::four_times_hidden_size),
    kBlockCount,
    row_of("attention.head_count", count_or_counts, formulas::falcon_heads),
    row_of("attention.head_count_kv", count_or_counts, formulas::falcon_kv_heads),
    {"attention.layer_norm_epsilon", real, "layer_norm_epsilon", required},
    kFileType,
};
constexpr KeyRow kStableLm[] = {
    {"context_length", count, "max_position_embeddings", required},
    {"embedding_length", count, "hidden_size", required},
    kBlockCount,
    {"feed_forward_length", count_or_counts, "intermediate_size", required},
    row_of("rope.dimension_count", count, formulas::rope_dimensions_stablelm),
    {"attention.head_count", count_or_counts, "num_attention_heads", required},
    {"attention.head_count_kv", count_or_counts, "num_key_value_heads", required},
    {"use_parallel_residual", boolean, "use_parallel_residual", optional, "true"},
    {"attention.layer_norm_epsilon", real, "layer_norm_eps norm_eps", required},
    kFileType,
};

constexpr KeyRow kBert[] = {
    row_of("attention.causal", boolean, formulas::no),
    written_by(formulas::write_pooling),
    row_of("classifier.output_labels", list, formulas::class_labels),
};
constexpr KeyRow kNomicMoe[] = {
    {"moe_every_n_layers", count, "moe_every_n_layers", required},
    {"expert_used_count", count, "moe_top_k", required},
};
constexpr KeyRow kModernBert[] = {
    {"attention.sliding_window", count, "local_attention", required},
    {"attention.sliding_window_pattern", count_or_counts, "global_attn_every_n_layers"},
    row_of("rope.scaling.type", text, formulas::rope_none),
    {"vocab_size", count, "vocab_size", required},
    {"hidden_activation", text, "hidden_activation", if_true},
};
constexpr KeyRow kNeoBert[] = {
    row_of("feed_forward_length", count, formulas::two_thirds_of_intermediate_size),
    {"rope.freq_base", real, {}, optional, "10000.0"},
    row_of("rope.scaling.type", text, formulas::rope_none),
    {"attention.layer_norm_rms_epsilon", real, "norm_eps", optional, "1e-6"},
    {"pooling_type", count, {}, optional, "2"},
};
constexpr KeyRow kEuroBert[] = {
    row_of("attention.causal", boolean, formulas::no),
    row_of("rope.scaling.type", text, formulas::rope_none),
    written_by(formulas::write_pooling),
};

constexpr KeyRow kT5Sizes[] = {
    row_of("context_length", count, formulas::t5_context_length),
    {"embedding_length", count, "d_model", required},
    {"feed_forward_length", count_or_counts, "d_ff", required},
    kBlockCount,
};
constexpr KeyRow kT5Decoder[] = {{"decoder_block_count", count, "num_decoder_layers"}};
constexpr KeyRow kT5Attention[] = {
    {"attention.head_count", count_or_counts, "num_heads", required},
    {"attention.key_length", count, "d_kv", required},
    {"attention.value_length", count, "d_kv", required},
    {"attention.layer_norm_epsilon", real, "layer_norm_epsilon", required},
    {"attention.relative_buckets_count", count, "relative_attention_num_buckets", required},
    {"attention.layer_norm_rms_epsilon", real, "layer_norm_epsilon", required},
};
constexpr KeyRow kT5End[] = {{"decoder_start_token_id", count, "decoder_start_token_id", required}, kFileType};
constexpr KeyRow kT5EncoderEnd[] = {kFileType};

constexpr KeyRow kDeepseek[] = {
    row_of("rope.dimension_count", count, formulas::rope_dimensions),
    row_of("rope.scaling.type", text, formulas::rope_none),
    {"leading_dense_block_count", count, "first_k_dense_replace", required},
    {"vocab_size", count, "vocab_size", required},
    {"expert_feed_forward_length", count, "moe_intermediate_size", required},
    {"expert_weights_scale", real, {}, optional, "1.0"},
    {"expert_count", count, "n_routed_experts", required},
    {"expert_shared_count", count, "n_shared_experts", required},
};
constexpr KeyRow kDeepseek2[] = {
    row_of("leading_dense_block_count", count, formulas::leading_dense_blocks),
    {"vocab_size", count, "vocab_size", required},
    {"attention.q_lora_rank", count, "q_lora_rank"},
    {"attention.kv_lora_rank", count, "kv_lora_rank", optional, "512"},
    row_of("attention.key_length", count, formulas::mla_key_length),
    row_of("attention.value_length", count, formulas::mla_value_length),
    row_of("attention.key_length_mla", count, formulas::mla_key_length_of_head),
    {"attention.value_length_mla", count, "v_head_dim", required},
    {"expert_feed_forward_length", count, "moe_intermediate_size intermediate_size", required},
    {"expert_count", count, "n_routed_experts"},
    {"expert_shared_count", count, "n_shared_experts", optional, "0"},
    {"expert_weights_scale", real, "routed_scaling_factor"},
    {"expert_weights_norm", boolean, "norm_topk_prob", if_true},
    {"rope.dimension_count", count, "qk_rope_head_dim", required},
    row_of("rope.scaling.yarn_log_multiplier", real, formulas::tenth_of_mscale),
    row_of("nextn_predict_layers", count, formulas::guessing_blocks),
};

constexpr KeyRow kGptOss[] = {
    {"attention.sliding_window", count, "sliding_window", required},
    {"expert_feed_forward_length", count, "intermediate_size", required},
};

constexpr KeyRow kGlm4[] = {
    row_of("rope.dimension_count", count, formulas::rope_dimensions_half),
    row_of("nextn_predict_layers", count, formulas::guessing_blocks_of_glm),
};
constexpr KeyRow kGlm4Moe[] = {
    row_of("rope.dimension_count", count, formulas::rope_dimensions_half),
    {"expert_count", count, "n_routed_experts"},
    {"expert_feed_forward_length", count, "moe_intermediate_size"},
    {"expert_shared_count", count, "n_shared_experts"},
    {"leading_dense_block_count", count, "first_k_dense_replace"},
    {"expert_gating_func", count, {}, optional, "2"},
    {"expert_weights_scale", real, "routed_scaling_factor"},
    {"expert_weights_norm", boolean, "norm_topk_prob"},
    {"nextn_predict_layers", count, "num_nextn_predict_layers"},
};

constexpr KeyRow kOlmo[] = {
    {"attention.layer_norm_epsilon", real, {}, optional, "1e-5"},
    {"attention.clamp_kqv", real, "clip_qkv"},
};
constexpr KeyRow kOlmo2[] = {
    {"attention.sliding_window", count, "sliding_window"},
    row_of("attention.sliding_window_pattern", list, formulas::sliding_layers),
};
constexpr KeyRow kOlmoe[] = {{"attention.layer_norm_rms_epsilon", real, {}, optional, "1e-5"}};

constexpr KeyRow kCommandR[] = {
    {"logit_scale", real, "logit_scale", required},
    row_of("rope.scaling.type", text, formulas::rope_none),
};
constexpr KeyRow kCohere2[] = {
    {"logit_scale", real, "logit_scale", required},
    {"attention.sliding_window", count, "sliding_window", required},
    {"vocab_size", count, "vocab_size", required},
    row_of("rope.dimension_count", count, formulas::rope_dimensions_percent),
    row_of("rope.scaling.type", text, formulas::rope_none),
};

constexpr KeyRow kLfm2[] = {
    {"vocab_size", count, "vocab_size", required},
    {"shortconv.l_cache", count, "conv_L_cache", required},
    {"attention.layer_norm_rms_epsilon", real, "norm_eps", required},
    row_of("feed_forward_length", count, formulas::lfm2_feed_forward_length),
    row_of("attention.causal", boolean, formulas::lfm2_causal),
    written_by(formulas::write_pooling),
};

constexpr KeyRow kMiniCpm[] = {
    {"embedding_scale", real, "scale_emb", required},
    row_of("residual_scale", real, formulas::minicpm_residual_scale),
    row_of("logit_scale", real, formulas::minicpm_logit_scale),
};

constexpr KeyRow kMamba[] = {
    {"context_length", count, {}, optional, "1048576"},
    {"embedding_length", count, "hidden_size d_model", required},
    {"feed_forward_length", count, {}, optional, "0"},
    {"attention.head_count", count, {}, optional, "0"},
    kBlockCount,
    row_of("ssm.conv_kernel", count, formulas::mamba_conv),
    row_of("ssm.inner_size", count, formulas::mamba_inner),
    row_of("ssm.state_size", count, formulas::mamba_state),
    row_of("ssm.time_step_rank", count, formulas::mamba_time_step_rank),
    row_of("attention.layer_norm_rms_epsilon", real, formulas::mamba_epsilon),
    row_of("ssm.dt_b_c_rms", boolean, formulas::mamba_has_norms),
    kFileType,
};

constexpr ArchitectureKeys kArchitectures[] = {
    {"apertus", nullptr, {kBase, kLlama}},
    {"arcee", nullptr, {kBase, kLlama, kPooling}},
    {"bert", formulas::prepare_bert, {kBase, kBert}},
    {"cohere2", nullptr, {kBase, kCohere2}},
    {"command-r", formulas::prepare_command_r, {kBase, kCommandR}},
    {"deepseek", nullptr, {kBase, kDeepseek}},
    {"deepseek2", formulas::prepare_deepseek2, {kBase, kDeepseek2}},
    {"eurobert", nullptr, {kBase, kEuroBert}},
    {"falcon", nullptr, {kFalcon}},
    {"gemma", nullptr, {kGemma}},
    {"gemma-embedding", formulas::prepare_gemma3, {kBase, kGemma3, kGemmaEmbedding}},
    {"gemma2", nullptr, {kGemma, kGemma2}},
    {"gemma3", formulas::prepare_gemma3, {kBase, kGemma3}},
    {"glm4", formulas::prepare_guessing, {kBase, kGlm4}},
    {"glm4moe", formulas::prepare_guessing, {kBase, kGlm4Moe}},
    {"gpt-oss", nullptr, {kBase, kGptOss}},
    {"gpt2", formulas::prepare_gpt2, {kGpt2}},
    {"gptneox", nullptr, {kGptNeox}},
    {"granite", formulas::prepare_granite, {kBase, kLlama, kGranite}},
    {"granitemoe", formulas::prepare_granite, {kBase, kLlama, kGranite, kGraniteMoe}},
    {"internlm2", nullptr, {kBase}},
    {"jina-bert-v2", nullptr, {kBase, kBert}},
    {"lfm2", formulas::prepare_lfm2, {kBase, kLfm2}},
    {"llama", formulas::prepare_llama, {kBase, kLlama}},
    {"llama-embed", nullptr, {kBase, kLlama}},
    {"mamba", nullptr, {kMamba}},
    {"minicpm", nullptr, {kBase, kMiniCpm}},
    {"mistral3", formulas::prepare_ministral, {kBase, kLlama, kMinistral}},
    {"mistral4", formulas::prepare_deepseek2, {kBase, kDeepseek2}},
    {"modern-bert", nullptr, {kBase, kBert, kModernBert}},
    {"neo-bert", nullptr, {kBase, kBert, kNeoBert}},
    {"nomic-bert", formulas::prepare_nomic, {kBase, kBert}},
    {"nomic-bert-moe", formulas::prepare_nomic, {kBase, kBert, kNomicMoe}},
    {"olmo", nullptr, {kBase, kOlmo}},
    {"olmo2", nullptr, {kBase, kOlmo2}},
    {"olmoe", nullptr, {kBase, kOlmoe}},
    {"phi2", nullptr, {kPhi2}},
    {"phi3", nullptr, {kPhi3}},
    {"phimoe", nullptr, {kPhi3, kPhiMoe}},
    {"qwen2", nullptr, {kBase, kPooling}},
    {"qwen2moe", nullptr, {kBase, kQwenMoe}},
    {"qwen2vl", nullptr, {kBase}},
    {"qwen3", nullptr, {kBase, kQwen3}},
    {"qwen35", formulas::prepare_qwen3next, {kBase, kQwenMoe, kQwen3Next, kQwen35}},
    {"qwen35moe", formulas::prepare_qwen3next, {kBase, kQwenMoe, kQwen3Next, kQwen35}},
    {"qwen3moe", nullptr, {kBase, kQwenMoe}},
    {"qwen3next", formulas::prepare_qwen3next, {kBase, kQwenMoe, kQwen3Next}},
    {"qwen3vl", nullptr, {kBase, kQwen3, kDeepstack}},
    {"qwen3vlmoe", nullptr, {kBase, kQwenMoe, kDeepstack}},
    {"seed_oss", nullptr, {kBase}},
    {"smollm3", nullptr, {kBase, kLlama}},
    {"stablelm", nullptr, {kStableLm}},
    {"starcoder", nullptr, {kStarcoder}},
    {"starcoder2", nullptr, {kBase}},
    {"t5", nullptr, {kT5Sizes, kT5Decoder, kT5Attention, kT5End}},
    {"t5encoder", nullptr, {kT5Sizes, kT5Attention, kT5EncoderEnd}},
};
// clang-format on

}  // namespace

const ArchitectureKeys* find_architecture_keys(std::string_view architecture) {
  const auto* row = std::ranges::find(kArchitectures, architecture, &ArchitectureKeys::architecture);
  return row == std::end(kArchitectures) ? nullptr : row;
}

}  // namespace ballast::llamacpp
