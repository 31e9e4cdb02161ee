#include "ops/merge/table.hpp"

#include <algorithm>
#include <array>

#include "ops/merge/rules.hpp"

namespace ballast::merging {
namespace {

constexpr std::string_view kPrompt = "it adds tokens or keys and values to the input, which no weight can hold";
constexpr std::string_view kNoRule = "there is no rule for it here yet";

// In the order of importance. The parameters of a type: the longest name first where one ends like another.
constexpr std::array kMethods = {
    Method{{"LORA", "lora_",
            "lora_A.weight lora_B.weight lora_B.bias lora_embedding_A lora_embedding_B lora_magnitude_vector.weight "
            "lora_magnitude_vector",
            "W + s B A; with DoRA, m times that over its norm for each output", "",
            "lora_all_linear lora_bf16_base_bf16_adapter lora_bf16_base_f32_adapter lora_bias_all lora_bias_lora_only "
            "lora_bin_file lora_conv2d lora_dora lora_dora_small_net lora_embed_lmhead "
            "lora_embed_only_no_embedding_layers lora_fp16_base_f32_adapter lora_fp16_base_fp16_adapter "
            "lora_gpt2_bias_lora_only lora_gpt2_dora lora_gpt2_fan_in_fan_out lora_layer_replication "
            "lora_layers_to_transform lora_lora_bias lora_mha lora_modules_to_save_bert lora_modules_to_save_llama "
            "lora_patterns lora_pissa_converted lora_plain lora_regex_targets lora_rslora lora_small_net_all "
            "lora_target_parameters lora_trainable_tokens lora_tricky_adapter_name_lora "
            "lora_tricky_adapter_name_q_proj lora_tricky_adapter_name_weight lora_two_adapters"},
           merge_lora},
    Method{{"ADALORA", "lora_", "lora_A lora_B lora_E", "W + s B (A * E) / (r + 1e-5)", "",
            "adalora adalora_rank_pattern"},
           merge_adalora},
    Method{{"IA3", "ia3_", "ia3_l", "W * l, b * l", "", "ia3 ia3_bias_gpt2 ia3_conv2d"}, merge_ia3},
    Method{{"TRAINABLE_TOKENS", "trainable_tokens_", "trainable_tokens_delta", "rows of W replaced", "",
            "trainable_tokens trainable_tokens_tied"}},
    Method{{"LN_TUNING", "ln_tuning_", "ln_tuning_layers.weight ln_tuning_layers.bias", "W replaced", "", "ln_tuning"},
           merge_ln_tuning},
    Method{{"LOHA", "hada_", "hada_w1_a hada_w1_b hada_w2_a hada_w2_b hada_t1 hada_t2",
            "W + s (w1_a w1_b) * (w2_a w2_b)", "", "loha loha_conv_effective loha_conv_plain"},
           merge_loha},
    Method{{"LOKR", "lokr_", "lokr_w1 lokr_w1_a lokr_w1_b lokr_w2 lokr_w2_a lokr_w2_b lokr_t2", "W + s kron(w1, w2)",
            "", "lokr lokr_conv_effective lokr_decompose_both lokr_full_rank"},
           merge_lokr},
    Method{{"OFT", "oft_", "oft_R.weight", "W R', R of blocks (I - Q) (I + Q)^-1, or of the Neumann series of it", "",
            "oft oft_block_share_coft oft_cayley_neumann_off oft_conv"},
           merge_oft},
    Method{{"BOFT", "boft_", "boft_R boft_s", "W R' * s, R a product of butterflies' factors", "", "boft"}, merge_boft},
    Method{{"HRA", "hra_", "hra_u", "W H1 H2 ..., reflections", "", "hra hra_gs"}, merge_hra},
    Method{{"VERA", "vera_lambda_", "vera_lambda_b vera_lambda_d", "W + (b * B) (d * A)", "",
            "vera_with_projection vera_without_projection"},
           merge_vera,
           "vera_A vera_B"},
    Method{{"PVERA", "pvera_lambda_", "pvera_lambda_b pvera_lambda_d", "W + (b * B) (d * A), of the means", "",
            "extra_pvera"},
           merge_pvera,
           "pvera_A pvera_B"},
    Method{{"RANDLORA", "randlora_", "randlora_lambda randlora_gamma randlora_A randlora_B", "W + s sum of bases", "",
            "randlora_with_projection randlora_without_projection"},
           merge_randlora,
           "randlora_A randlora_B"},
    Method{{"VBLORA", "vblora_",
            "vblora_logits_A vblora_logits_B vblora_logits_A_topk_indices vblora_logits_A_topk_weights "
            "vblora_logits_B_topk_indices vblora_logits_B_topk_weights",
            "W + B A, both from a bank of vectors", "", "vblora vblora_topk_only"},
           merge_vblora,
           "vblora_vector_bank"},
    Method{{"SHIRA", "shira_", "shira_weight shira_indices", "W + values at places", "", "shira"}, merge_shira},
    Method{{"FOURIERFT", "fourierft_", "fourierft_spectrum", "W + s Re(ifft2(S))", "", "fourierft"}, merge_fourierft},
    Method{{"WAVEFT", "waveft_", "waveft_spectrum", "W + s idwt2(S)", "", "extra_waveft"}, merge_waveft},
    Method{{"C3A", "c3a_", "c3a_kernel", "W + circulant blocks / in", "", "extra_c3a"}, merge_c3a},
    Method{{"ROAD", "road_", "road_theta road_alpha", "R W, R b, R turning pairs of outputs", "", "extra_road"},
           merge_road},
    Method{
        {"MISS", "miss_", "miss_block", "W + B repeated; the form \"bat\", W + W B + B", "", "miss miss_bat miss_mini"},
        merge_miss},
    Method{{"DELORA", "delora_", "delora_A delora_B delora_lambda delora_w_norm",
            "W + B diag(l / r / norms of A and B) A * norms of W", "", "extra_delora"},
           merge_delora},
    Method{{"GRALORA", "gralora_", "gralora_A gralora_B gralora_A_general.weight gralora_B_general.weight",
            "W + s B A in each block", "", "extra_gralora"},
           merge_gralora},
    Method{{"HIRA", "hira_", "hira_A hira_B hira_embedding_A hira_embedding_B", "W + W * (B A)", "", "extra_hira"},
           merge_hira},
    Method{{"TINYLORA", "tinylora_", "tinylora_A tinylora_B tinylora_P", "W + B (sum of v P) A", "", "extra_tinylora"},
           merge_tinylora,
           "tinylora_v"},
    Method{{"UNILORA", "unilora_", "unilora_indices_A unilora_indices_B unilora_scales_A unilora_scales_B",
            "W + B A, both from one vector", "", "extra_unilora"},
           merge_unilora,
           "unilora_theta_d",
           true},
    Method{{"PROMPT_TUNING", "", "", "", kPrompt, ""}},
    Method{{"P_TUNING", "", "", "", kPrompt, ""}},
    Method{{"PREFIX_TUNING", "", "", "", kPrompt, ""}},
    Method{{"MULTITASK_PROMPT_TUNING", "", "", "", kPrompt, ""}},
    Method{{"CPT", "", "", "", kPrompt, ""}},
    Method{{"CARTRIDGE", "", "", "", kPrompt, ""}},
    Method{{"ADAPTION_PROMPT", "adaption_", "", "", "it adds a gated prompt to the attention, which no weight can hold",
            ""}},
    Method{{"XLORA", "xlora_", "", "", "it mixes adapters anew for every input: merge one of them instead", ""}},
    Method{{"POLY", "poly_", "", "", "its router chooses among adapters by the task of an input", ""}},
    Method{{"LILY", "lily_", "", "", "its router mixes adapters anew for every input", ""}},
    Method{{"PEANUT", "peanut_", "", "", kNoRule, ""}},
    Method{{"FROD", "frod_", "", "", kNoRule, ""}},
    Method{{"OSF", "osf_", "", "", kNoRule, ""}},
    Method{{"GLORA", "glora_", "", "", kNoRule, ""}},
    Method{{"ADAMSS", "adamss_", "", "", kNoRule, ""}},
    Method{{"DEFT", "deft_", "", "", kNoRule, ""}},
    Method{{"PSOFT", "psoft_", "", "", kNoRule, ""}},
    Method{{"SUPERTUNING", "supertuning_", "", "", kNoRule, ""}},
    Method{{"BEFT", "beft_", "", "", kNoRule, ""}},
};

constexpr auto kRules = [] {
  std::array<MergeRule, kMethods.size()> rules;
  for (std::size_t i = 0; i < rules.size(); ++i) rules[i] = kMethods[i].rule;
  return rules;
}();

}  // namespace

const Method* find_method(std::string_view peft_type) noexcept {
  const auto* found = std::ranges::find_if(kMethods, [&](const Method& m) { return m.rule.peft_type == peft_type; });
  return found == kMethods.end() ? nullptr : found;
}

}  // namespace ballast::merging

namespace ballast {

std::span<const MergeRule> merge_rules() noexcept { return merging::kRules; }

}  // namespace ballast
