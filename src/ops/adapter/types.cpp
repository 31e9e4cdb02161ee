#include "ops/adapter/types.hpp"

#include <ballast/error.hpp>
#include <ballast/suggest.hpp>

#include <algorithm>
#include <vector>

#include "core/text.hpp"

namespace ballast::adapter {
namespace {

// clang-format off
constexpr PeftType kTypes[] = {
    {.name = "LORA", .prefix = "lora_",
     .layer = "lora_A lora_B lora_embedding_A lora_embedding_B "
              "lora_magnitude_vector lora_arrow lora_diag lora_monteclora_sampler lora_velora_embed"},
    {.name = "ADALORA", .prefix = "lora_", .layer = "lora_A lora_B lora_E lora_embedding_A lora_embedding_B"},
    {.name = "ADAMSS", .prefix = "adamss_", .layer = "adamss_A adamss_B adamss_newB"},
    {.name = "BEFT", .prefix = "beft_", .layer = "beft_bias"},
    {.name = "BOFT", .prefix = "boft_", .layer = "boft_R boft_s"},
    {.name = "C3A", .prefix = "c3a_", .layer = "c3a_kernel"},
    {.name = "DEFT", .prefix = "deft_", .layer = "deft_P deft_R"},
    {.name = "DELORA", .prefix = "delora_", .layer = "delora_A delora_B delora_lambda delora_w_norm"},
    {.name = "FOURIERFT", .prefix = "fourierft_", .layer = "fourierft_spectrum"},
    {.name = "FROD", .prefix = "frod_", .layer = "frod_lambda_l frod_lambda_s_values",
     .categories = "frod_V frod_s_indices frod_s_size", .optional = "frod_V frod_s_indices frod_s_size",
     .saved_if = "save_projection"},
    {.name = "GLORA", .prefix = "glora_", .layer = "glora_A glora_B glora_C glora_D glora_E"},
    {.name = "GRALORA", .prefix = "gralora_", .layer = "gralora_A gralora_B gralora_A_general gralora_B_general"},
    {.name = "HIRA", .prefix = "hira_", .layer = "hira_A hira_B hira_embedding_A hira_embedding_B"},
    {.name = "HRA", .prefix = "hra_", .layer = "hra_u"},
    {.name = "IA3", .prefix = "ia3_", .layer = "ia3_l"},
    {.name = "LILY", .prefix = "lily_", .layer = "lily_A lily_B lily_router"},
    {.name = "LN_TUNING", .prefix = "ln_tuning_", .layer = "ln_tuning_layers"},
    {.name = "LOHA", .prefix = "hada_", .layer = "hada_w1_a hada_w1_b hada_w2_a hada_w2_b hada_t1 hada_t2"},
    {.name = "LOKR", .prefix = "lokr_", .layer = "lokr_w1 lokr_w1_a lokr_w1_b lokr_w2 lokr_w2_a lokr_w2_b lokr_t2"},
    {.name = "MISS", .prefix = "miss_", .layer = "miss_block"},
    {.name = "OFT", .prefix = "oft_", .layer = "oft_R oft_embedding_R"},
    {.name = "OSF", .prefix = "osf_", .layer = "osf_svd_params _osf_U_high _osf_S_high _osf_V_high"},
    {.name = "PEANUT", .prefix = "peanut_", .layer = "peanut_A peanut_B peanut_encoders peanut_decoders"},
    {.name = "POLY", .prefix = "poly_", .layer = "poly_lora_A poly_lora_B poly_router"},
    {.name = "PSOFT", .prefix = "psoft_", .layer = "psoft_R"},
    {.name = "PVERA", .prefix = "pvera_lambda_", .layer = "pvera_lambda_b pvera_lambda_d",
     .shared = "pvera_A pvera_B", .optional = "pvera_A pvera_B", .saved_if = "save_projection"},
    {.name = "RANDLORA", .prefix = "randlora_", .layer = "randlora_lambda randlora_gamma randlora_A randlora_B",
     .shared = "randlora_A randlora_B", .optional = "randlora_A randlora_B", .saved_if = "save_projection"},
    {.name = "ROAD", .prefix = "road_", .layer = "road_theta road_alpha"},
    {.name = "SHIRA", .prefix = "shira_", .layer = "shira_weight shira_indices"},
    {.name = "SUPERTUNING", .prefix = "supertuning_",
     .layer = "supertuning_values supertuning_lora_A supertuning_lora_B supertuning_indices",
     .optional = "supertuning_indices", .saved_if = "save_precomputed_indices"},
    {.name = "TINYLORA", .prefix = "tinylora_", .layer = "tinylora_A tinylora_B tinylora_P", .shared = "tinylora_v",
     .optional = "tinylora_P", .saved_if = "save_projection"},
    {.name = "TRAINABLE_TOKENS", .prefix = "trainable_tokens_", .layer = "trainable_tokens_delta"},
    {.name = "UNILORA", .prefix = "unilora_",
     .layer = "unilora_indices_A unilora_indices_B unilora_scales_A unilora_scales_B", .shared = "unilora_theta_d",
     .optional = "unilora_indices_A unilora_indices_B unilora_scales_A unilora_scales_B", .saved_if = "save_indices"},
    {.name = "VBLORA", .prefix = "vblora_", .layer = "vblora_logits_A vblora_logits_B",
     .shared = "vblora_vector_bank"},
    {.name = "VERA", .prefix = "vera_lambda_", .layer = "vera_lambda_b vera_lambda_d", .shared = "vera_A vera_B",
     .optional = "vera_A vera_B", .saved_if = "save_projection"},
    {.name = "WAVEFT", .prefix = "waveft_", .layer = "waveft_spectrum"},
    {.name = "ADAPTION_PROMPT", .prefix = "adaption_", .layer = "adaption_prompt adaption_gate",
     .kind = Kind::adaption, .wrapper = "model"},
    {.name = "CARTRIDGE", .layer = "prompt_embeddings", .kind = Kind::prompt},
    {.name = "CPT", .layer = "prompt_embeddings", .kind = Kind::prompt},
    {.name = "MULTITASK_PROMPT_TUNING", .layer = "prompt_embeddings prefix_task_cols prefix_task_rows",
     .kind = Kind::prompt},
    {.name = "P_TUNING", .layer = "prompt_embeddings", .kind = Kind::prompt},
    {.name = "PREFIX_TUNING", .layer = "prompt_embeddings", .kind = Kind::prompt},
    {.name = "PROMPT_TUNING", .layer = "prompt_embeddings", .kind = Kind::prompt},
    {.name = "XLORA", .prefix = "xlora_", .shared = "internal_xlora_classifier", .kind = Kind::classifier},
};
// clang-format on
static_assert(std::size(kTypes) == 44);

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
  return has_word(type.layer, segment) || has_word(type.shared, segment) || has_word(type.categories, segment);
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

}  // namespace ballast::adapter
