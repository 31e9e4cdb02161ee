// The inverse of every formula of key_formulas.hpp: the value of config.json that the formula makes the key of.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "llamacpp/back/back_model.hpp"
#include "llamacpp/back/round_number.hpp"
#include "llamacpp/config/json_values.hpp"
#include "llamacpp/keys/key_formulas.hpp"

namespace ballast::llamacpp::back {
namespace {

using Inverse = void (*)(BackModel& model, std::string_view key);

void blocks(BackModel& model, std::string_view key) {
  if (!model.facts.count(key)) return;
  model.set(model.name_of("num_hidden_layers n_layers n_layer num_layers"), model.facts.main_blocks());
}

// A value that has the same name in every class.
template <const char* kName>
void as_it_is(BackModel& model, std::string_view key) {
  model.set(kName, model.facts.value(key));
}
constexpr char kScoringFunction[] = "scoring_func", kIsCausal[] = "is_causal", kHeads[] = "num_attention_heads",
               kFalconKeys[] = "num_kv_heads", kWindow[] = "sliding_window", kLeadingBlocks[] = "first_k_dense_replace",
               kInner[] = "intermediate_size", kConvolution[] = "conv_kernel", kState[] = "state_size",
               kTimeSteps[] = "time_step_rank", kEpsilon[] = "layer_norm_epsilon",
               kOriginalLength[] = "original_max_position_embeddings";

void scoring_function(BackModel& model, std::string_view key) {
  constexpr std::pair<std::uint64_t, std::string_view> kFunctions[] = {
      {1, "softmax"}, {2, "sigmoid"}, {4, "sqrtsoftplus"}};
  for (const auto& [number, name] : kFunctions) {
    if (model.facts.count(key) == number) model.set(kScoringFunction, name);
  }
}

void feed_forward(BackModel& model, std::string_view key) {
  model.set(model.name_of("n_inner intermediate_size"), model.facts.value(key));
}

void window_unless_zero(BackModel& model, std::string_view key) {
  const auto window = model.facts.count(key);
  if (window) model.config.set(kWindow, *window == 0 ? Json() : Json(*window));
}

void kinds_of_layers(BackModel& model, std::string_view key) {
  const Json slides = model.facts.value(key);
  if (!slides.is_list()) return;
  Json::List kinds;
  for (const Json& one : slides.list()) kinds.emplace_back(is_true(&one) ? "sliding_attention" : "full_attention");
  model.set("layer_types", std::move(kinds));
}

void linear_value_size(BackModel& model, std::string_view key) {
  const auto inner = model.facts.count(key), heads = model.facts.count("ssm.time_step_rank");
  if (inner && heads && *heads != 0) model.set("linear_value_head_dim", *inner / *heads);
}

void unrotated_size(BackModel& model, std::string_view key) {
  const auto whole = model.facts.count(key), rotated = model.facts.count("rope.dimension_count");
  if (whole && rotated && *whole >= *rotated) model.set("qk_nope_head_dim", *whole - *rotated);
}

void depth_scale(BackModel& model, std::string_view key) {
  const auto scale = model.facts.number(key);
  const double root = std::sqrt(static_cast<double>(model.facts.main_blocks()));
  if (!scale || root == 0) return;
  model.set("scale_depth", round_number(*scale * root, [&](double x) { return is_float(x / root, *scale); }));
}

void base_size(BackModel& model, std::string_view key) {
  const auto scale = model.facts.number(key);
  const auto size = model.facts.count("embedding_length");
  if (!scale || *scale == 0 || !size) return;
  const auto whole = static_cast<double>(*size);
  const double near = std::round(whole / *scale);
  if (const auto base = truncated(near); base && near != 0 && is_float(whole / near, *scale))
    return model.set("dim_model_base", *base);
  model.set("dim_model_base",
            round_number(whole / *scale, [&](double x) { return x != 0 && is_float(whole / x, *scale); }));
}

void labels(BackModel& model, std::string_view key) {
  const Json texts = model.facts.value(key);
  constexpr std::size_t kMostLabels = 1 << 12;
  if (!texts.is_list() || texts.list().empty() || texts.list().size() > kMostLabels) return;
  Json names = Json::Members(), numbers = Json::Members();
  for (std::uint64_t i = 0; i < texts.list().size(); ++i) {
    const Json& text = texts.list()[i];
    if (!text.is_text()) return;
    names.set(std::to_string(i), text);
    numbers.set(text.text(), i);
  }
  model.set("id2label", std::move(names));
  model.set("label2id", std::move(numbers));
}

// The part of a head that is rotated, so that the number of rotated dimensions comes out again.
enum class Part { of_head, of_usual_head, of_all_heads };

Json rotated_part(const BackModel& model, std::string_view key, Part part) {
  const auto rotated = model.facts.count(key), heads = model.facts.count("attention.head_count");
  const auto size = model.facts.count("embedding_length");
  if (!rotated || !size || !heads || *heads == 0) return {};
  const std::uint64_t usual = *size / *heads;
  const std::uint64_t head = part == Part::of_head ? model.facts.count("attention.key_length").value_or(usual) : usual;
  if (head == 0) return {};
  const auto comes_out = [&](double x) {
    const auto whole = truncated(x * static_cast<double>(part == Part::of_all_heads ? *size : head));
    const std::uint64_t count = whole && *whole >= 0 ? static_cast<std::uint64_t>(*whole) : 0;
    return (part == Part::of_all_heads ? count / *heads : count) == *rotated;
  };
  return round_number(static_cast<double>(*rotated) / static_cast<double>(head), comes_out);
}

template <Part kPart>
void partial_factor(BackModel& model, std::string_view key) {
  model.set("partial_rotary_factor", rotated_part(model, key, kPart));
}

void percent(BackModel& model, std::string_view key) {
  model.set("rotary_pct", rotated_part(model, key, Part::of_usual_head));
}

void ten_times_mscale(BackModel& model, std::string_view key) {
  const auto tenth = model.facts.number(key);
  if (!tenth) return;
  const Json scale = round_number(10 * *tenth, [&](double x) { return is_float(0.1 * x, *tenth); });
  if (scale.is_null()) return;
  model.rope.set("mscale", scale);  // llama.cpp takes both for the same
  model.rope.set("mscale_all_dim", scale);
}

void mscale(BackModel& model, std::string_view key) {
  const Json scale = model.facts.value(key);
  if (scale.is_null()) return;
  model.rope.set("mscale", scale);
  model.rope.set("mscale_all_dim", scale);
}

void temperature(BackModel& model, std::string_view key) {
  const Json scale = model.facts.value(key);
  if (!scale.is_null()) model.rope.set("llama_4_scaling_beta", scale);
}

struct FormulaInverse {
  Json (*formula)(const HyperModel&);
  Inverse inverse;
};
// Formulas that are not here say nothing that config.json does not have from other keys; those about rotary positions
// are in rope.cpp.
constexpr FormulaInverse kInverses[] = {
    {formulas::block_count, blocks},
    {formulas::not_causal, as_it_is<kIsCausal>},
    {formulas::gating_function, scoring_function},
    {formulas::four_times_n_embd, feed_forward},
    {formulas::window_unless_pattern_is_one, as_it_is<kWindow>},
    {formulas::window_as_in_the_file, as_it_is<kWindow>},
    {formulas::window_or_zero, window_unless_zero},
    {formulas::sliding_layers, kinds_of_layers},
    {formulas::falcon_heads, as_it_is<kHeads>},
    {formulas::falcon_kv_heads, as_it_is<kFalconKeys>},
    {formulas::linear_inner_size, linear_value_size},
    {formulas::leading_dense_blocks, as_it_is<kLeadingBlocks>},
    {formulas::mla_key_length_of_head, unrotated_size},
    {formulas::minicpm_residual_scale, depth_scale},
    {formulas::minicpm_logit_scale, base_size},
    {formulas::lfm2_feed_forward_length, as_it_is<kInner>},
    {formulas::mamba_conv, as_it_is<kConvolution>},
    {formulas::mamba_inner, as_it_is<kInner>},
    {formulas::mamba_state, as_it_is<kState>},
    {formulas::mamba_time_step_rank, as_it_is<kTimeSteps>},
    {formulas::mamba_epsilon, as_it_is<kEpsilon>},
    {formulas::class_labels, labels},
    {formulas::rope_original_length, as_it_is<kOriginalLength>},
    {formulas::rope_dimensions_half, partial_factor<Part::of_head>},
    {formulas::rope_dimensions_quarter, partial_factor<Part::of_head>},
    {formulas::rope_dimensions_phi, partial_factor<Part::of_all_heads>},
    {formulas::rope_dimensions_phi3, partial_factor<Part::of_all_heads>},
    {formulas::rope_dimensions_stablelm, partial_factor<Part::of_usual_head>},
    {formulas::rope_dimensions_percent, percent},
    {formulas::tenth_of_mscale, ten_times_mscale},
    {formulas::mscale_of_ministral, mscale},
    {formulas::temperature_of_ministral, temperature},
};

}  // namespace

void undo_formula(BackModel& model, const KeyRow& row) {
  const auto* found = std::ranges::find(kInverses, row.value, &FormulaInverse::formula);
  if (found != std::end(kInverses)) found->inverse(model, row.key);
}

}  // namespace ballast::llamacpp::back
