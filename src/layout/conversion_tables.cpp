#include "layout/conversion_tables.hpp"

namespace ballast {
namespace {

// Experts whose matrices are called as those of a dense layer.
constexpr std::string_view kNamedExperts = R"({"rules": [
  {"from": "{x}.mlp.experts.{expert}.gate_proj.weight", "to": "{x}.mlp.experts.gate_proj.weight", "stack": 0, "optional": true},
  {"from": "{x}.mlp.experts.{expert}.up_proj.weight", "to": "{x}.mlp.experts.up_proj.weight", "stack": 0, "optional": true},
  {"from": ["{x}.mlp.experts.gate_proj.weight", "{x}.mlp.experts.up_proj.weight"], "to": "{x}.mlp.experts.gate_up_proj",
   "concat": 1, "optional": true},
  {"from": "{x}.mlp.experts.{expert}.down_proj.weight", "to": "{x}.mlp.experts.down_proj", "stack": 0, "optional": true}
]})";

// Experts whose matrices have numbers, in a module that may have several names.
constexpr std::string_view kNumberedExperts = R"({"rules": [
  {"from": "{x}.experts.{expert}.w1.weight", "to": "{x}.experts.w1.weight", "stack": 0, "optional": true},
  {"from": "{x}.experts.{expert}.w3.weight", "to": "{x}.experts.w3.weight", "stack": 0, "optional": true},
  {"from": ["{x}.experts.w1.weight", "{x}.experts.w3.weight"], "to": "{x}.experts.gate_up_proj",
   "concat": 1, "optional": true},
  {"from": "{x}.experts.{expert}.w2.weight", "to": "{x}.experts.down_proj", "stack": 0, "optional": true}
]})";

constexpr std::string_view kSparseBlock = R"({"rules": [
  {"from": "{x}.block_sparse_moe.{y}", "to": "{x}.mlp.{y}", "optional": true}
]})";

constexpr std::string_view kPhimoe = R"({"rules": [
  {"from": "{x}.block_sparse_moe.{y}", "to": "{x}.mlp.{y}", "optional": true},
  {"from": "{x}.mlp.gate.weight", "to": "{x}.mlp.router.weight", "optional": true}
]})";

constexpr std::string_view kJamba = R"({"rules": [
  {"from": "{x}.feed_forward.experts.{expert}.gate_proj.weight", "to": "{x}.feed_forward.experts.gate_proj.weight",
   "stack": 0, "optional": true},
  {"from": "{x}.feed_forward.experts.{expert}.up_proj.weight", "to": "{x}.feed_forward.experts.up_proj.weight",
   "stack": 0, "optional": true},
  {"from": ["{x}.feed_forward.experts.gate_proj.weight", "{x}.feed_forward.experts.up_proj.weight"],
   "to": "{x}.feed_forward.experts.gate_up_proj", "concat": 1, "optional": true},
  {"from": "{x}.feed_forward.experts.{expert}.down_proj.weight", "to": "{x}.feed_forward.experts.down_proj",
   "stack": 0, "optional": true}
]})";

constexpr std::string_view kNemotron = R"({"rules": [
  {"from": "backbone.{y}", "to": "model.{y}", "optional": true},
  {"from": "{x}.embedding.weight", "to": "{x}.embeddings.weight", "optional": true},
  {"from": "{x}.mixer.experts.{expert}.up_proj.weight", "to": "{x}.mixer.experts.up_proj", "stack": 0, "optional": true},
  {"from": "{x}.mixer.experts.{expert}.down_proj.weight", "to": "{x}.mixer.experts.down_proj", "stack": 0, "optional": true}
]})";

constexpr std::string_view kGranite = R"({"rules": [
  {"from": ["{x}.block_sparse_moe.input_linear.weight", "{x}.block_sparse_moe.output_linear.weight",
            "{x}.block_sparse_moe.router.layer.weight"],
   "to": ["{x}.block_sparse_moe.experts.gate_up_proj", "{x}.block_sparse_moe.experts.down_proj",
          "{x}.block_sparse_moe.router.weight"], "optional": true}
]})";

// Published with matrices that are transposed; newer files are not.
constexpr std::string_view kQwen3Vision = R"({"rules": [
  {"from": "{x}.mlp.experts.gate_up_proj", "permute": [0, 2, 1], "fit": [2, "{x}.input_layernorm.weight"], "optional": true},
  {"from": "{x}.mlp.experts.down_proj", "permute": [0, 2, 1], "fit": [1, "{x}.input_layernorm.weight"], "optional": true}
]})";

constexpr std::string_view kErnieBias = R"({"rules": [
  {"from": "{x}.mlp.moe_statics.e_score_correction_bias", "to": "{x}.mlp.gate.moe_statics.e_score_correction_bias",
   "optional": true}
]})";
constexpr std::string_view kExaoneBias = R"({"rules": [
  {"from": "{x}.mlp.e_score_correction_bias", "to": "{x}.mlp.gate.e_score_correction_bias", "optional": true}
]})";
constexpr std::string_view kMimoSinks = R"({"rules": [
  {"from": "{x}.self_attn.attention_sink_bias", "to": "{x}.self_attn.sinks", "optional": true}
]})";

// What OpenAI publishes beside the files for transformers. Queries, keys and values are 64, 8 and 8 heads.
constexpr std::string_view kGptOss = R"({"rules": [
  {"from": ["block.{n}.attn.norm.scale", "block.{n}.mlp.norm.scale", "block.{n}.attn.sinks"],
   "to": ["model.layers.{n}.input_layernorm.weight", "model.layers.{n}.post_attention_layernorm.weight",
          "model.layers.{n}.self_attn.sinks"], "optional": true},
  {"from": ["block.{n}.attn.out.{p}", "block.{n}.mlp.gate.{p}", "block.{n}.mlp.mlp1_weight.{p}",
            "block.{n}.mlp.mlp2_weight.{p}"],
   "to": ["model.layers.{n}.self_attn.o_proj.{p}", "model.layers.{n}.mlp.router.{p}",
          "model.layers.{n}.mlp.experts.gate_up_proj_{p}", "model.layers.{n}.mlp.experts.down_proj_{p}"],
   "except": ["block.{n}.mlp.mlp1_weight.bias", "block.{n}.mlp.mlp2_weight.bias"], "optional": true},
  {"from": ["block.{n}.mlp.mlp1_bias", "block.{n}.mlp.mlp2_bias", "block.{n}.mlp.mlp1_weight", "block.{n}.mlp.mlp2_weight"],
   "to": ["model.layers.{n}.mlp.experts.gate_up_proj_bias", "model.layers.{n}.mlp.experts.down_proj_bias",
          "model.layers.{n}.mlp.experts.gate_up_proj", "model.layers.{n}.mlp.experts.down_proj"], "optional": true},
  {"from": "block.{n}.attn.qkv.{p}",
   "to": ["model.layers.{n}.self_attn.q_proj.{p}", "model.layers.{n}.self_attn.k_proj.{p}",
          "model.layers.{n}.self_attn.v_proj.{p}"], "split": 0, "sizes": [8, 1, 1], "optional": true},
  {"from": ["embedding.weight", "norm.scale", "unembedding.weight"],
   "to": ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"], "optional": true}
]})";

// TensorFlow's words for the two vectors of a norm.
constexpr std::string_view kBert = R"({"rules": [
  {"from": ["{x}.LayerNorm.gamma", "{x}.LayerNorm.beta"], "to": ["{x}.LayerNorm.weight", "{x}.LayerNorm.bias"],
   "optional": true},
  {"from": ["LayerNorm.gamma", "LayerNorm.beta"], "to": ["LayerNorm.weight", "LayerNorm.bias"], "optional": true}
]})";

constexpr std::string_view kWeightNorm = R"({"rules": [
  {"from": ["{x}.weight_g", "{x}.weight_v"],
   "to": ["{x}.parametrizations.weight.original0", "{x}.parametrizations.weight.original1"], "optional": true}
]})";

constexpr std::string_view kNomic = R"({"rules": [
  {"from": "encoder.layers.{y}", "to": "layers.{y}", "optional": true},
  {"from": "{x}.encoder.layers.{y}", "to": "{x}.layers.{y}", "optional": true},
  {"from": "emb_ln.{y}", "to": "embeddings.LayerNorm.{y}", "optional": true},
  {"from": "{x}.emb_ln.{y}", "to": "{x}.embeddings.LayerNorm.{y}", "optional": true},
  {"from": ["{x}.attn.out_proj.{y}", "{x}.mlp.fc11.{y}", "{x}.mlp.fc12.{y}", "{x}.mlp.fc2.{y}", "{x}.norm1.{y}",
            "{x}.norm2.{y}"],
   "to": ["{x}.self_attn.o_proj.{y}", "{x}.mlp.up_proj.{y}", "{x}.mlp.gate_proj.{y}", "{x}.mlp.down_proj.{y}",
          "{x}.post_attention_layernorm.{y}", "{x}.post_mlp_layernorm.{y}"], "optional": true},
  {"from": "{x}.attn.Wqkv.{y}", "to": ["{x}.self_attn.q_proj.{y}", "{x}.self_attn.k_proj.{y}", "{x}.self_attn.v_proj.{y}"],
   "split": 0, "optional": true}
]})";

// The layers lie in a module of their own now; in newer files they do already.
constexpr std::string_view kDinov3 = R"({"rules": [
  {"from": "layer.{y}", "to": "model.layer.{y}", "optional": true},
  {"from": "{x}.layer.{y}", "to": "{x}.model.layer.{y}", "except": ["model.layer.{y}", "{x}.model.layer.{y}"], "optional": true}
]})";

constexpr std::string_view kTimesfm = R"({"rules": [
  {"from": ["{x}.ff0.{y}", "{x}.ff1.{y}"], "to": ["{x}.fc1.{y}", "{x}.fc2.{y}"], "optional": true}
]})";

constexpr ConversionRow kRows[] = {
    {"mixtral minimax minimax_m2", {kSparseBlock, kNumberedExperts}},
    {"phimoe", {kPhimoe, kNumberedExperts}},
    {"lfm2_moe", {kNumberedExperts, {}}},
    {"afmoe cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 dots1 flex_olmo glm4_moe glm4_moe_lite glm4v_moe "
     "glm_moe_dsa hunyuan_v1_moe longcat_flash mellum olmoe qwen2_moe qwen3_moe qwen3_next qwen3_omni_moe "
     "qwen3_omni_moe_thinker solar_open",
     {kNamedExperts, {}}},
    {"ernie4_5_moe", {kErnieBias, kNamedExperts}},
    {"exaone_moe", {kExaoneBias, kNamedExperts}},
    {"mimo_v2_flash", {kMimoSinks, kNamedExperts}},
    {"jamba", {kJamba, {}}},
    {"nemotron_h", {kNemotron, {}}},
    {"granitemoe granitemoehybrid granitemoeshared", {kGranite, {}}},
    {"qwen3_vl_moe", {kQwen3Vision, {}}},
    {"gpt_oss", {kGptOss, {}}},
    {"albert bert big_bird camembert convbert data2vec-text deberta deberta-v2 distilbert electra ernie esm ibert "
     "layoutlm "
     "layoutlmv2 layoutlmv3 lilt longformer luke lxmert markuplm mobilebert mpnet nezha nystromformer rembert roberta "
     "roc_bert splinter squeezebert tapas visual_bert xlm-roberta xlm-roberta-xl xmod yoso",
     {kBert, {}}},
    {"hubert sew sew-d speecht5 unispeech unispeech-sat vits wav2vec2 wav2vec2-conformer wavlm", {kWeightNorm, {}}},
    {"nomic_bert", {kNomic, {}}},
    {"dinov3_vit", {kDinov3, {}}},
    {"timesfm2_5", {kTimesfm, {}}},
};

}  // namespace

std::span<const ConversionRow> conversion_rows() { return kRows; }

std::string_view words_of_tensorflow() { return kBert; }

}  // namespace ballast
