// Architectures with experts, and those that are like them.
#include "llamacpp/keys/key_base.hpp"

namespace ballast::llamacpp {
namespace keys {
namespace {

// clang-format off
constexpr KeyRow kGraniteMoe[] = {
    {"expert_shared_feed_forward_length", count, "shared_intermediate_size", if_true},
};
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
constexpr KeyRow kPhiMoe[] = {
    {"expert_used_count", count, "num_experts_per_tok num_experts_per_token", required},
    {"expert_count", count, "num_local_experts num_experts", required},
};
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
constexpr KeyRow kOlmoe[] = {{"attention.layer_norm_rms_epsilon", real, {}, optional, "1e-5"}};

constexpr ArchitectureKeys kExpertArchitectures[] = {
    {"deepseek", nullptr, {kBase, kDeepseek}},
    {"deepseek2", formulas::prepare_deepseek2, {kBase, kDeepseek2}},
    {"glm4moe", formulas::prepare_guessing, {kBase, kGlm4Moe}},
    {"gpt-oss", nullptr, {kBase, kGptOss}},
    {"granitemoe", formulas::prepare_granite, {kBase, kLlama, kGranite, kGraniteMoe}},
    {"mistral4", formulas::prepare_deepseek2, {kBase, kDeepseek2}},
    {"olmoe", nullptr, {kBase, kOlmoe}},
    {"phimoe", nullptr, {kPhi3, kPhiMoe}},
    {"qwen2moe", nullptr, {kBase, kQwenMoe}},
    {"qwen35", formulas::prepare_qwen3next, {kBase, kQwenMoe, kQwen3Next, kQwen35}},
    {"qwen35moe", formulas::prepare_qwen3next, {kBase, kQwenMoe, kQwen3Next, kQwen35}},
    {"qwen3moe", nullptr, {kBase, kQwenMoe}},
    {"qwen3next", formulas::prepare_qwen3next, {kBase, kQwenMoe, kQwen3Next}},
    {"qwen3vlmoe", nullptr, {kBase, kQwenMoe, kDeepstack}},
};
// clang-format on

}  // namespace
}  // namespace keys

std::span<const ArchitectureKeys> expert_architectures() { return keys::kExpertArchitectures; }

}  // namespace ballast::llamacpp
