// The cases of the reference vectors that test the merging of each type of PEFT.
#pragma once

#include <string_view>

namespace ballast::test {

struct ReferenceCases {
  std::string_view peft_type;
  std::string_view cases;  // separated by spaces
};

inline constexpr ReferenceCases kReferenceCases[] = {
    {"LORA",
     "lora_all_linear lora_bf16_base_bf16_adapter lora_bf16_base_f32_adapter lora_bias_all lora_bias_lora_only "
     "lora_bin_file lora_conv2d lora_dora lora_dora_small_net lora_embed_lmhead lora_embed_only_no_embedding_layers "
     "lora_fp16_base_f32_adapter lora_fp16_base_fp16_adapter lora_gpt2_bias_lora_only lora_gpt2_dora "
     "lora_gpt2_fan_in_fan_out lora_layer_replication lora_layers_to_transform lora_lora_bias lora_mha "
     "lora_modules_to_save_bert lora_modules_to_save_llama lora_patterns lora_pissa_converted lora_plain "
     "lora_regex_targets lora_rslora lora_small_net_all lora_target_parameters lora_trainable_tokens "
     "lora_tricky_adapter_name_lora lora_tricky_adapter_name_q_proj lora_tricky_adapter_name_weight lora_two_adapters"},
    {"ADALORA", "adalora adalora_rank_pattern"},
    {"IA3", "ia3 ia3_bias_gpt2 ia3_conv2d"},
    {"TRAINABLE_TOKENS", "trainable_tokens trainable_tokens_tied"},
    {"LN_TUNING", "ln_tuning"},
    {"LOHA", "loha loha_conv_effective loha_conv_plain"},
    {"LOKR", "lokr lokr_conv_effective lokr_decompose_both lokr_full_rank"},
    {"OFT", "oft oft_block_share_coft oft_cayley_neumann_off oft_conv"},
    {"BOFT", "boft"},
    {"HRA", "hra hra_gs"},
    {"VERA", "vera_with_projection vera_without_projection"},
    {"PVERA", "extra_pvera"},
    {"RANDLORA", "randlora_with_projection randlora_without_projection"},
    {"VBLORA", "vblora vblora_topk_only"},
    {"SHIRA", "shira"},
    {"FOURIERFT", "fourierft"},
    {"WAVEFT", "extra_waveft"},
    {"C3A", "extra_c3a"},
    {"ROAD", "extra_road"},
    {"MISS", "miss miss_bat miss_mini"},
    {"DELORA", "extra_delora"},
    {"GRALORA", "extra_gralora"},
    {"HIRA", "extra_hira"},
    {"TINYLORA", "extra_tinylora"},
    {"UNILORA", "extra_unilora"},
};

}  // namespace ballast::test
