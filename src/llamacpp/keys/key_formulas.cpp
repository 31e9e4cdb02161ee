#include "llamacpp/keys/key_formulas.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp::formulas {
namespace {

// A value of the config, or what stands for it if it is missing, null or 0.
Json value_or(const HyperModel& model, std::string_view keys, Json otherwise) {
  const Json* found = model.config.find_first(keys);
  return is_true(found) ? *found : otherwise;
}

Json value_at(const HyperModel& model, std::string_view key) {
  const Json* found = model.config.find(key);
  return found == nullptr ? Json() : *found;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) { return fits(checked_mul(a, b), "a product of two sizes"); }

Json truncated_product(double a, double b) {
  const auto whole = truncated(a * b);
  if (!whole) throw Error(Errc::malformed, "a product of two sizes is not a number that fits 64 bits");
  return *whole;
}

}  // namespace

Json block_count(const HyperModel& model) { return model.blocks; }

Json file_type(const HyperModel& model) { return std::uint64_t{model.file_type}; }

Json no(const HyperModel& /*model*/) { return false; }

Json not_causal(const HyperModel& model) {
  const Json* causal = model.config.find("is_causal");
  return causal != nullptr && causal->is_bool() && !causal->boolean() ? Json(false) : Json();
}

Json gating_function(const HyperModel& model) {
  const Json* name = model.config.find_first(
      "score_function scoring_func score_func moe_router_activation moe_router_activation_func expert_selection_fn");
  if (is_null(name)) return {};
  constexpr std::pair<std::string_view, int> kFunctions[] = {{"softmax", 1}, {"sigmoid", 2}, {"sqrtsoftplus", 4}};
  for (const auto& [function, number] : kFunctions) {
    if (name->is_text() && name->text() == function) return number;
  }
  throw Error(Errc::unsupported, "it chooses experts by a function that llama.cpp does not have (\"scoring_func\")");
}

Json four_times_n_embd(const HyperModel& model) { return 4 * model.config.count("n_embd"); }

Json four_times_hidden_size(const HyperModel& model) { return 4 * model.config.count("hidden_size n_embd"); }

Json t5_context_length(const HyperModel& model) {
  const Json length = value_at(model, "n_positions");
  return length.is_null() ? Json(512) : length;
}

Json two_thirds_of_intermediate_size(const HyperModel& model) {
  return truncated_product(static_cast<double>(2 * model.config.count("intermediate_size")) / 3, 1);
}

Json window_unless_pattern_is_one(const HyperModel& model) {
  const auto pattern = real_number(model.config.find("sliding_window_pattern"));
  return pattern == 1.0 ? Json() : Json(model.config.count("sliding_window"));
}

// transformers' class has halved it.
Json window_as_in_the_file(const HyperModel& model) {
  const Json* window = model.config.raw.find("sliding_window");
  if (is_null(window)) throw Error(Errc::malformed, "it has no \"sliding_window\"");
  return *window;
}

// 0 tells Phi-4 from the others.
Json window_or_zero(const HyperModel& model) {
  const Json* window = model.config.find("sliding_window");
  return is_null(window) ? Json(0) : *window;
}

// Whether each layer sees only a window. Layers that are not named see all every fourth time.
Json sliding_layers(const HyperModel& model) {
  if (model.config.find("sliding_window") == nullptr) return {};
  Json::List layers;
  if (const Json* types = model.config.find("layer_types")) {
    for (const Json& type : types->list()) layers.emplace_back(type == Json("sliding_attention"));
    return layers;
  }
  constexpr std::uint64_t kMostBlocks = 1 << 16;
  const std::uint64_t count = model.config.count("num_hidden_layers");
  if (count > kMostBlocks) throw Error(Errc::limit, "more layers than any model has (\"num_hidden_layers\")");
  for (std::uint64_t i = 1; i <= count; ++i) layers.emplace_back(i % 4 != 0);
  return layers;
}

Json falcon_heads(const HyperModel& model) {
  const Json* heads = model.config.find("num_attention_heads");
  return is_null(heads) ? Json(model.config.count("n_head")) : *heads;
}

Json falcon_kv_heads(const HyperModel& model) {
  const Json* heads = model.config.find("num_kv_heads");
  if (is_null(heads)) heads = model.config.find("n_head_kv");
  return heads == nullptr ? Json(1) : *heads;
}

Json linear_inner_size(const HyperModel& model) {
  return product(model.config.count("linear_value_head_dim"), model.config.count("linear_num_value_heads"));
}

Json guessing_blocks(const HyperModel& model) {
  return model.guessing_blocks > 0 ? Json(model.guessing_blocks) : Json();
}

// Only one family of dense models has such blocks.
Json guessing_blocks_of_glm(const HyperModel& model) {
  return model.config.class_name.starts_with("GlmOcr") ? value_at(model, "num_nextn_predict_layers") : Json();
}

Json deepstack_layers(const HyperModel& model) {
  constexpr int kUsual = 3;
  if (model.config.class_name.starts_with("Qwen3Omni") || model.config.class_name.starts_with("Qwen3ASR")) return 0;
  const Json* vision = model.config.find("vision_config");
  const Json* layers = vision == nullptr ? nullptr : vision->find("deepstack_visual_indexes");
  if (layers == nullptr) return model.config.has_defaults ? kUsual : 0;
  return layers->is_list() ? Json(std::uint64_t{layers->list().size()}) : Json(0);
}

Json leading_dense_blocks(const HyperModel& model) {
  const Json* leading = model.config.find("first_k_dense_replace");
  if (!is_null(leading)) return *leading;
  return is_null(model.config.find("n_routed_experts")) ? Json(model.config.count("num_hidden_layers")) : Json(0);
}

Json mla_value_length(const HyperModel& model) {
  return model.config.find("kv_lora_rank") == nullptr ? Json(512) : Json(model.config.count("kv_lora_rank"));
}

Json mla_key_length(const HyperModel& model) {
  return mla_value_length(model).integer() + static_cast<std::int64_t>(model.config.count("qk_rope_head_dim"));
}

Json mla_key_length_of_head(const HyperModel& model) {
  return model.config.count("qk_nope_head_dim") + model.config.count("qk_rope_head_dim");
}

Json minicpm_residual_scale(const HyperModel& model) {
  const auto layers = static_cast<double>(model.config.count("num_hidden_layers"));
  if (layers == 0) throw Error(Errc::malformed, "it has no layers (\"num_hidden_layers\")");
  return model.config.number("scale_depth") / std::sqrt(layers);
}

Json minicpm_logit_scale(const HyperModel& model) {
  const double base = model.config.number("dim_model_base");
  if (base == 0) throw Error(Errc::malformed, "\"dim_model_base\" is 0");
  return model.config.number("hidden_size") / base;
}

// Two thirds, times a factor, rounded up.
Json lfm2_feed_forward_length(const HyperModel& model) {
  const std::uint64_t given = model.config.count("block_ff_dim intermediate_size");
  if (!is_true(model.config.find("block_auto_adjust_ff_dim"))) return given;
  Json size = truncated_product(static_cast<double>(2 * given) / 3, 1);
  if (!is_null(model.config.find("block_ffn_dim_multiplier"))) {
    size = truncated_product(model.config.number("block_ffn_dim_multiplier"), size.number());
  }
  const std::uint64_t step = model.config.count("block_multiple_of");
  if (step == 0) throw Error(Errc::malformed, "\"block_multiple_of\" is 0");
  const std::uint64_t steps = fits(checked_add(size.count(), step - 1), "the size of the feed forward part") / step;
  return product(step, steps);
}

Json lfm2_causal(const HyperModel& model) {
  return model.config.class_name == "Lfm2BidirectionalModel" ? Json(false) : Json();
}

Json mamba_conv(const HyperModel& model) { return value_or(model, "conv_kernel d_conv", 4); }

Json mamba_inner(const HyperModel& model) {
  const std::uint64_t twice = 2 * model.config.count("hidden_size d_model");
  Json inner = value_or(model, "intermediate_size d_inner", twice);
  if (inner.is_integer() && inner.number() == static_cast<double>(twice)) return inner;
  throw Error(Errc::unsupported, "its inner size is not twice its hidden size, and llama.cpp knows no other Mamba");
}

Json mamba_state(const HyperModel& model) { return value_or(model, "state_size d_state", 16); }

Json mamba_time_step_rank(const HyperModel& model) {
  const std::uint64_t usual = (model.config.count("hidden_size d_model") + 15) / 16;
  const Json rank = value_or(model, "time_step_rank dt_rank", usual);
  return rank == Json("auto") ? Json(usual) : rank;
}

Json mamba_epsilon(const HyperModel& model) { return value_or(model, "layer_norm_epsilon rms_norm_eps", 1e-5); }

Json mamba_has_norms(const HyperModel& model) { return value_at(model, "model_type") == Json("falcon_mamba"); }

// Labels that mean something: two of transformers' own do not.
Json class_labels(const HyperModel& model) {
  const Json* labels = model.config.find("id2label");
  if (!is_true(labels) || !labels->is_object()) return {};
  const Json* first = labels->find("0");
  if (labels->members().size() == 2 && first != nullptr && *first == Json("LABEL_0")) return {};

  std::vector<Json::Member> sorted = labels->members();
  // Without a class the numbers are texts, and sorted as texts.
  if (!model.config.has_defaults) std::ranges::stable_sort(sorted, {}, &Json::Member::first);
  Json::List texts;
  for (auto& [number, label] : sorted) texts.push_back(std::move(label));
  return texts;
}

}  // namespace ballast::llamacpp::formulas
