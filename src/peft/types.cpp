#include "peft/types.hpp"

#include <ballast/error.hpp>
#include <ballast/merge.hpp>
#include <ballast/suggest.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include "core/text.hpp"
#include "peft/merge/rules.hpp"

namespace ballast {
namespace peft {
namespace {

constexpr std::string_view kPrompt = "it adds tokens or keys and values to the input, which no weight can hold";
constexpr std::string_view kNoRule = "Ballast has no rule for it yet";

// clang-format off
constexpr std::array kTypes = {
    PeftType{.name = "LORA", .prefix = "lora_",
     .layer = "lora_A lora_B lora_embedding_A lora_embedding_B "
              "lora_magnitude_vector lora_arrow lora_diag lora_monteclora_sampler lora_velora_embed",
     .formula = "W + s B A; with DoRA, m times that over its norm for each output", .merge = merge_lora,
     .merged = "lora_A.weight lora_B.weight lora_B.bias lora_embedding_A lora_embedding_B lora_magnitude_vector",
     .training = "lora_monteclora_sampler lora_velora_embed"},
    PeftType{.name = "ADALORA", .prefix = "lora_", .layer = "lora_A lora_B lora_E lora_embedding_A lora_embedding_B",
     .formula = "W + s B (A * E) / (r + 1e-5)", .merge = merge_adalora, .merged = "lora_A lora_B lora_E"},
    PeftType{.name = "IA3", .prefix = "ia3_", .layer = "ia3_l", .formula = "W * l, b * l", .merge = merge_ia3},
    PeftType{.name = "TRAINABLE_TOKENS", .prefix = "trainable_tokens_", .layer = "trainable_tokens_delta",
     .formula = "rows of W replaced"},
    PeftType{.name = "LN_TUNING", .prefix = "ln_tuning_", .layer = "ln_tuning_layers",
     .formula = "W replaced", .merge = merge_ln_tuning, .merged = "ln_tuning_layers.weight ln_tuning_layers.bias"},
    PeftType{.name = "LOHA", .prefix = "hada_", .layer = "hada_w1_a hada_w1_b hada_w2_a hada_w2_b hada_t1 hada_t2",
     .formula = "W + s (w1_a w1_b) * (w2_a w2_b)", .merge = merge_loha},
    PeftType{.name = "LOKR", .prefix = "lokr_",
     .layer = "lokr_w1 lokr_w1_a lokr_w1_b lokr_w2 lokr_w2_a lokr_w2_b lokr_t2",
     .formula = "W + s kron(w1, w2)", .merge = merge_lokr},
    PeftType{.name = "OFT", .prefix = "oft_", .layer = "oft_R oft_embedding_R",
     .formula = "W R', R of blocks (I - Q) (I + Q)^-1, or of the Neumann series of it", .merge = merge_oft,
     .merged = "oft_R.weight", .turns_one_side = true},
    PeftType{.name = "BOFT", .prefix = "boft_", .layer = "boft_R boft_s",
     .formula = "W R' * s, R a product of butterflies' factors", .merge = merge_boft, .turns_one_side = true},
    PeftType{.name = "HRA", .prefix = "hra_", .layer = "hra_u",
     .formula = "W H1 H2 ..., reflections", .merge = merge_hra, .turns_one_side = true},
    PeftType{.name = "VERA", .prefix = "vera_lambda_", .layer = "vera_lambda_b vera_lambda_d",
     .shared = "vera_A vera_B", .optional = "vera_A vera_B", .saved_if = "save_projection",
     .formula = "W + (b * B) (d * A)", .merge = merge_vera},
    PeftType{.name = "PVERA", .prefix = "pvera_lambda_", .layer = "pvera_lambda_b pvera_lambda_d",
     .shared = "pvera_A pvera_B", .optional = "pvera_A pvera_B", .saved_if = "save_projection",
     .formula = "W + (b * B) (d * A), of the means", .merge = merge_pvera},
    PeftType{.name = "RANDLORA", .prefix = "randlora_", .layer = "randlora_lambda randlora_gamma randlora_A randlora_B",
     .shared = "randlora_A randlora_B", .optional = "randlora_A randlora_B", .saved_if = "save_projection",
     .formula = "W + s sum of bases", .merge = merge_randlora},
    PeftType{.name = "VBLORA", .prefix = "vblora_", .layer = "vblora_logits_A vblora_logits_B",
     .in_files = "vblora_logits_A_topk_indices vblora_logits_A_topk_weights "
                 "vblora_logits_B_topk_indices vblora_logits_B_topk_weights",
     .shared = "vblora_vector_bank",
     .formula = "W + B A, both from a bank of vectors", .merge = merge_vblora,
     .merged = "vblora_logits_A vblora_logits_B vblora_logits_A_topk_indices vblora_logits_A_topk_weights "
               "vblora_logits_B_topk_indices vblora_logits_B_topk_weights"},
    PeftType{.name = "SHIRA", .prefix = "shira_", .layer = "shira_weight shira_indices",
     .formula = "W + values at places", .merge = merge_shira},
    PeftType{.name = "FOURIERFT", .prefix = "fourierft_", .layer = "fourierft_spectrum",
     .formula = "W + s Re(ifft2(S))", .merge = merge_fourierft},
    PeftType{.name = "WAVEFT", .prefix = "waveft_", .layer = "waveft_spectrum",
     .formula = "W + s idwt2(S)", .merge = merge_waveft},
    PeftType{.name = "C3A", .prefix = "c3a_", .layer = "c3a_kernel",
     .formula = "W + circulant blocks / in", .merge = merge_c3a, .turns_one_side = true},
    PeftType{.name = "ROAD", .prefix = "road_", .layer = "road_theta road_alpha",
     .formula = "R W, R b, R turning pairs of outputs", .merge = merge_road, .turns_one_side = true},
    PeftType{.name = "MISS", .prefix = "miss_", .layer = "miss_block",
     .formula = "W + B repeated; the form \"bat\", W + W B + B", .merge = merge_miss, .turns_one_side = true},
    PeftType{.name = "DELORA", .prefix = "delora_", .layer = "delora_A delora_B delora_lambda delora_w_norm",
     .formula = "W + B diag(l / r / norms of A and B) A * norms of W", .merge = merge_delora},
    PeftType{.name = "GRALORA", .prefix = "gralora_", .layer = "gralora_A gralora_B gralora_A_general gralora_B_general",
     .formula = "W + s B A in each block", .merge = merge_gralora,
     .merged = "gralora_A gralora_B gralora_A_general.weight gralora_B_general.weight"},
    PeftType{.name = "HIRA", .prefix = "hira_", .layer = "hira_A hira_B hira_embedding_A hira_embedding_B",
     .formula = "W + W * (B A)", .merge = merge_hira},
    PeftType{.name = "TINYLORA", .prefix = "tinylora_", .layer = "tinylora_A tinylora_B tinylora_P",
     .shared = "tinylora_v", .optional = "tinylora_P", .saved_if = "save_projection",
     .formula = "W + B (sum of v P) A", .merge = merge_tinylora},
    PeftType{.name = "UNILORA", .prefix = "unilora_",
     .layer = "unilora_indices_A unilora_indices_B unilora_scales_A unilora_scales_B", .shared = "unilora_theta_d",
     .optional = "unilora_indices_A unilora_indices_B unilora_scales_A unilora_scales_B", .saved_if = "save_indices",
     .formula = "W + B A, both from one vector", .merge = merge_unilora},
    PeftType{.name = "CARTRIDGE", .layer = "prompt_embeddings", .kind = Kind::prompt, .why_not = kPrompt},
    PeftType{.name = "CPT", .layer = "prompt_embeddings", .kind = Kind::prompt, .why_not = kPrompt},
    PeftType{.name = "MULTITASK_PROMPT_TUNING", .layer = "prompt_embeddings prefix_task_cols prefix_task_rows",
     .kind = Kind::prompt, .why_not = kPrompt},
    PeftType{.name = "P_TUNING", .layer = "prompt_embeddings", .kind = Kind::prompt, .why_not = kPrompt},
    PeftType{.name = "PREFIX_TUNING", .layer = "prompt_embeddings", .kind = Kind::prompt, .why_not = kPrompt},
    PeftType{.name = "PROMPT_TUNING", .layer = "prompt_embeddings", .kind = Kind::prompt, .why_not = kPrompt},
    PeftType{.name = "ADAPTION_PROMPT", .prefix = "adaption_", .layer = "adaption_prompt adaption_gate",
     .kind = Kind::adaption, .wrapper = "model",
     .why_not = "it adds a gated prompt to the attention, which no weight can hold"},
    PeftType{.name = "XLORA", .prefix = "xlora_", .shared = "internal_xlora_classifier", .kind = Kind::classifier,
     .why_not = "it mixes adapters anew for every input: merge one of them instead"},
    PeftType{.name = "POLY", .prefix = "poly_", .layer = "poly_lora_A poly_lora_B poly_router",
     .why_not = "its router chooses among adapters by the task of an input"},
    PeftType{.name = "LILY", .prefix = "lily_", .layer = "lily_A lily_B lily_router",
     .why_not = "its router mixes adapters anew for every input"},
    PeftType{.name = "PEANUT", .prefix = "peanut_", .layer = "peanut_A peanut_B peanut_encoders peanut_decoders",
     .why_not = kNoRule},
    PeftType{.name = "FROD", .prefix = "frod_", .layer = "frod_lambda_l frod_lambda_s_values",
     .categories = "frod_V frod_s_indices frod_s_size", .optional = "frod_V frod_s_indices frod_s_size",
     .saved_if = "save_projection", .why_not = kNoRule},
    PeftType{.name = "OSF", .prefix = "osf_", .layer = "osf_svd_params _osf_U_high _osf_S_high _osf_V_high",
     .why_not = kNoRule},
    PeftType{.name = "GLORA", .prefix = "glora_", .layer = "glora_A glora_B glora_C glora_D glora_E",
     .why_not = kNoRule},
    PeftType{.name = "ADAMSS", .prefix = "adamss_", .layer = "adamss_A adamss_B adamss_newB", .why_not = kNoRule},
    PeftType{.name = "DEFT", .prefix = "deft_", .layer = "deft_P deft_R", .why_not = kNoRule},
    PeftType{.name = "PSOFT", .prefix = "psoft_", .layer = "psoft_R", .why_not = kNoRule},
    PeftType{.name = "SUPERTUNING", .prefix = "supertuning_",
     .layer = "supertuning_values supertuning_lora_A supertuning_lora_B supertuning_indices",
     .optional = "supertuning_indices", .saved_if = "save_precomputed_indices", .why_not = kNoRule},
    PeftType{.name = "BEFT", .prefix = "beft_", .layer = "beft_bias", .why_not = kNoRule},
};
// clang-format on
static_assert(kTypes.size() == 44);

// MonteCLoRA and VeLoRA change how A is trained, and are plain LoRAs afterwards, which PEFT merges as such.
constexpr LoraVariant kVariants[] = {
    {"DoRA", "use_dora"},
    {"MonteCLoRA", "monteclora_config"},
    {"VeLoRA", "velora_config"},
    {"KaSA", "kasa_config"},
    {"aLoRA", "alora_invocation_tokens",
     "aLoRA acts only on the tokens after its invocation, so no weight can hold it"},
    {"Arrow", "arrow_config", "Arrow chooses among adapters for each token, so no weight can hold it"},
    {"BD-LoRA", "use_bdlora", "the blocks of BD-LoRA are laid out for several devices"},
    {"QA-LoRA", "use_qalora", "QA-LoRA is merged into the zero points of a quantized base, which are not in this one"},
};

// As Python's bool() has it, by which PEFT decides.
bool is_truthy(const Json& value) {
  if (value.is_list()) return !value.list().empty();
  if (value.is_object()) return !value.members().empty();
  return !(value == Json(false)) && !(value.is_number() && value.number() == 0) && !(value == Json(""));
}

constexpr auto kRules = [] {
  std::array<MergeRule, kTypes.size()> rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const PeftType& type = kTypes[i];
    rules[i] = {type.name, type.prefix, type.merged_parameters(), type.formula, type.why_not};
  }
  return rules;
}();

}  // namespace

std::span<const PeftType> peft_types() noexcept { return kTypes; }

const PeftType& peft_type(const AdapterConfig& config) {
  const std::string wanted = config.peft_type();
  std::vector<std::string_view> names;
  for (const PeftType& type : kTypes) {
    if (type.name == wanted) return type;
    names.push_back(type.name);
  }
  Error error(Errc::unsupported, "adapters of the type " + quote(wanted) + " are not known");
  if (wanted == "BONE")
    throw error.hint("PEFT calls this type MISS now: load it with an older release and save it anew");
  if (const auto near = nearest(wanted, names)) throw error.hint("did you mean " + *near + "?");
  throw error.hint("\"peft_type\" in adapter_config.json must be one of PEFT's types, such as LORA");
}

bool has_word(std::string_view words, std::string_view word) noexcept {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || words[at - 1] == ' ';
    if (begins && (end == words.size() || words[end] == ' ')) return !word.empty();
  }
  return false;
}

bool is_parameter(const PeftType& type, std::string_view segment) noexcept {
  return has_word(type.layer, segment) || has_word(type.in_files, segment) || has_word(type.shared, segment) ||
         has_word(type.categories, segment);
}

bool is_any_parameter(std::string_view segment) noexcept {
  return segment == "ranknum" ||
         std::ranges::any_of(kTypes, [&](const PeftType& type) { return is_parameter(type, segment); });
}

bool is_any_shared(std::string_view segment) noexcept {
  return std::ranges::any_of(kTypes, [&](const PeftType& type) {
    return has_word(type.shared, segment) || has_word(type.categories, segment);
  });
}

bool is_saved(const PeftType& type, const AdapterConfig& config, std::string_view parameter) {
  return !has_word(type.optional, parameter) || config.is_set(type.saved_if);
}

std::vector<const LoraVariant*> lora_variants(const AdapterConfig& config) {
  std::vector<const LoraVariant*> found;
  if (config.text("peft_type") != "LORA") return found;
  for (const LoraVariant& variant : kVariants) {
    const Json* value = config.find(variant.field);
    if (value != nullptr && is_truthy(*value)) found.push_back(&variant);
  }
  return found;
}

std::string_view why_not_merged(const PeftType& type, const AdapterConfig& config) {
  for (const LoraVariant* variant : lora_variants(config)) {
    if (!variant->why_not.empty()) return variant->why_not;
  }
  return type.why_not;
}

}  // namespace peft

std::span<const MergeRule> merge_rules() noexcept { return peft::kRules; }

}  // namespace ballast
