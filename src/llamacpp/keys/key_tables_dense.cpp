// Architectures whose blocks have one feed forward part. Mixtral is a llama, too.
#include "llamacpp/keys/key_base.hpp"

namespace ballast::llamacpp {
namespace keys {
namespace {

// clang-format off
constexpr KeyRow kMinistral[] = {
    row_of("rope.scaling.yarn_log_multiplier", real, formulas::mscale_of_ministral),
    row_of("attention.temperature_scale", real, formulas::temperature_of_ministral),
};
constexpr KeyRow kQwen3[] = {written_by(formulas::write_pooling), written_by(formulas::write_reranker)};
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
constexpr KeyRow kGlm4[] = {
    row_of("rope.dimension_count", count, formulas::rope_dimensions_half),
    row_of("nextn_predict_layers", count, formulas::guessing_blocks_of_glm),
};
constexpr KeyRow kOlmo[] = {
    {"attention.layer_norm_epsilon", real, {}, optional, "1e-5"},
    {"attention.clamp_kqv", real, "clip_qkv"},
};
constexpr KeyRow kOlmo2[] = {
    {"attention.sliding_window", count, "sliding_window"},
    row_of("attention.sliding_window_pattern", list, formulas::sliding_layers),
};
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

constexpr ArchitectureKeys kDenseArchitectures[] = {
    {"apertus", nullptr, {kBase, kLlama}},
    {"arcee", nullptr, {kBase, kLlama, kPooling}},
    {"cohere2", nullptr, {kBase, kCohere2}},
    {"command-r", formulas::prepare_command_r, {kBase, kCommandR}},
    {"falcon", nullptr, {kFalcon}},
    {"gemma", nullptr, {kGemma}},
    {"gemma-embedding", formulas::prepare_gemma3, {kBase, kGemma3, kGemmaEmbedding}},
    {"gemma2", nullptr, {kGemma, kGemma2}},
    {"gemma3", formulas::prepare_gemma3, {kBase, kGemma3}},
    {"glm4", formulas::prepare_guessing, {kBase, kGlm4}},
    {"gpt2", formulas::prepare_gpt2, {kGpt2}},
    {"gptneox", nullptr, {kGptNeox}},
    {"granite", formulas::prepare_granite, {kBase, kLlama, kGranite}},
    {"internlm2", nullptr, {kBase}},
    {"lfm2", formulas::prepare_lfm2, {kBase, kLfm2}},
    {"llama", formulas::prepare_llama, {kBase, kLlama}},
    {"llama-embed", nullptr, {kBase, kLlama}},
    {"mamba", nullptr, {kMamba}},
    {"minicpm", nullptr, {kBase, kMiniCpm}},
    {"mistral3", formulas::prepare_ministral, {kBase, kLlama, kMinistral}},
    {"olmo", nullptr, {kBase, kOlmo}},
    {"olmo2", nullptr, {kBase, kOlmo2}},
    {"phi2", nullptr, {kPhi2}},
    {"phi3", nullptr, {kPhi3}},
    {"qwen2", nullptr, {kBase, kPooling}},
    {"qwen2vl", nullptr, {kBase}},
    {"qwen3", nullptr, {kBase, kQwen3}},
    {"qwen3vl", nullptr, {kBase, kQwen3, kDeepstack}},
    {"seed_oss", nullptr, {kBase}},
    {"smollm3", nullptr, {kBase, kLlama}},
    {"stablelm", nullptr, {kStableLm}},
    {"starcoder", nullptr, {kStarcoder}},
    {"starcoder2", nullptr, {kBase}},
};
// clang-format on

}  // namespace
}  // namespace keys

std::span<const ArchitectureKeys> dense_architectures() { return keys::kDenseArchitectures; }

}  // namespace ballast::llamacpp
