// What the presence of tensors says.
#include <algorithm>
#include <string>
#include <string_view>

#include "llamacpp/back/back_model.hpp"

namespace ballast::llamacpp::back {
namespace {

// A value of config.json that is true if there is a tensor whose name ends so.
struct TensorSign {
  std::string_view name, ending;
  std::string_view model_types;  // with a space around each
};
constexpr TensorSign kSigns[] = {
    {"attention_bias", ".attn_q.bias",
     " llama arcee granite granitemoe granitemoeshared smollm3 seed_oss qwen3 qwen3_moe qwen3_next qwen3_5_text "
     "qwen3_5_moe_text gemma gemma2 gemma3_text glm4 glm4_moe gpt_oss olmo olmo2 olmo3 cohere cohere2 phimoe "},
    {"attention_bias", ".attn_qkv.bias", " gpt_neox modernbert "},
    {"attention_bias", ".attn_kv_a_mqa.bias", " deepseek_v2 deepseek_v3 "},
    {"attention_out_bias", ".attn_output.bias", " seed_oss "},
    {"mlp_bias", ".ffn_up.bias", " llama arcee granite smollm3 seed_oss modernbert "},
    {"norm_bias", "token_embd_norm.bias", " modernbert "},
    {"use_qkv_bias", ".attn_q.bias", " stablelm "},
    {"qk_layernorm", ".attn_q_norm.weight", " stablelm "},
    {"use_qk_norm", ".attn_q_norm.weight", " cohere glm4_moe "},
    {"bias", ".attn_qkv.bias", " falcon "},
    {"bias", ".attn_q.bias", " internlm2 "},
    {"use_bias", ".attn_q.bias", " starcoder2 "},
    {"use_bias", ".ssm_in.bias", " mamba falcon_mamba "},
    {"use_conv_bias", ".ssm_conv1d.bias", " mamba falcon_mamba "},
    {"conv_bias", ".shortconv.conv.bias", " lfm2 "},
    {"lm_head_bias", "output.bias", " phimoe "},
};

bool is_among(std::string_view model_type, std::string_view model_types) {
  return model_types.find(" " + std::string(model_type) + " ") != std::string_view::npos;
}

}  // namespace

void add_tensor_signs(BackModel& model) {
  for (const TensorSign& sign : kSigns) {
    if (is_among(model.of.model_type, sign.model_types)) model.set(sign.name, model.facts.has_ending(sign.ending));
  }
  constexpr std::string_view kWithHead[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
  const bool has_head =
      std::ranges::any_of(kWithHead, [&](std::string_view ending) { return model.of.class_name.ends_with(ending); });
  if (has_head && model.facts.has("token_embd.weight")) {
    model.set("tie_word_embeddings", !model.facts.has("output.weight"));
  }
}

}  // namespace ballast::llamacpp::back
