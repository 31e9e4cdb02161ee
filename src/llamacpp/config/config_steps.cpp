#include "llamacpp/config/config_steps.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp {
namespace {

// No model has more layers; a list of layers is made only up to here.
constexpr std::int64_t kMostLayers = 1 << 16;

// Python's hidden_size // num_attention_heads.
std::optional<std::int64_t> usual_head_dim(const Json& values) {
  const auto hidden_size = whole_number(values.find("hidden_size"));
  const auto heads = whole_number(values.find("num_attention_heads"));
  if (!hidden_size || !heads || *heads <= 0 || *hidden_size < 0) return std::nullopt;
  return *hidden_size / *heads;
}

bool set_usual_head_dim(Json& values) {
  const auto size = usual_head_dim(values);
  if (size) values.set("head_dim", *size);
  return size.has_value();
}

std::optional<std::int64_t> layer_count(const Json& values) {
  const auto layers = whole_number(values.find("num_hidden_layers"));
  return layers && *layers >= 0 && *layers <= kMostLayers ? layers : std::nullopt;
}

bool all_layer_types_are_known(const Json& types) {
  constexpr std::string_view kKnown[] = {"full_attention", "sliding_attention", "chunked_attention",
                                         "linear_attention"};
  return types.is_list() && std::ranges::all_of(types.list(), [&](const Json& type) {
           return type.is_text() && std::ranges::find(kKnown, type.text()) != std::end(kKnown);
         });
}

}  // namespace

bool kv_heads_as_heads(Json& values, const Json& /*given*/) {
  if (is_null(values.find("num_key_value_heads"))) values.set("num_key_value_heads", values.at("num_attention_heads"));
  return true;
}

bool multi_query_heads(Json& values, const Json& given) {
  if (given.find("num_key_value_heads") != nullptr) return true;
  values.set("num_key_value_heads", is_true(values.find("multi_query")) ? Json(1) : values.at("n_head"));
  return true;
}

bool heads_divide_hidden_size(Json& values, const Json& /*given*/) {
  const auto size = usual_head_dim(values);
  return size && *size * values.at("num_attention_heads").integer() == values.at("hidden_size").integer();
}

bool head_dim_as_is_usual(Json& values, const Json& /*given*/) {
  return !is_null(values.find("head_dim")) || set_usual_head_dim(values);
}

bool head_dim_unless_given(Json& values, const Json& given) {
  return given.find("head_dim") != nullptr || set_usual_head_dim(values);
}

bool head_dim_is_rotary(Json& values, const Json& /*given*/) {
  values.set("head_dim", values.at("qk_rope_head_dim"));
  return true;
}

bool head_dim_is_rotary_unless_given(Json& values, const Json& given) {
  return given.find("head_dim") != nullptr || head_dim_is_rotary(values, given);
}

bool layer_types_are_known(Json& values, const Json& /*given*/) {
  const Json& types = values.at("layer_types");
  if (types.is_null()) return true;  // then all are of a usual kind, which no key says
  const auto layers = whole_number(values.find("num_hidden_layers"));
  return all_layer_types_are_known(types) && layers && *layers == static_cast<std::int64_t>(types.list().size());
}

bool olmo3_layer_types(Json& values, const Json& /*given*/) {
  if (!values.at("layer_types").is_null()) return all_layer_types_are_known(values.at("layer_types"));
  const auto layers = layer_count(values);
  if (!layers) return false;
  Json::List types;
  for (std::int64_t i = 1; i <= *layers; ++i) types.emplace_back(i % 4 == 0 ? "full_attention" : "sliding_attention");
  values.set("layer_types", std::move(types));
  return true;
}

bool lfm2_layers(Json& values, const Json& given) {
  if (const Json* theta = given.find("theta")) values.set("rope_theta", *theta);
  if (const Json* size = given.find("block_ff_dim")) values.set("intermediate_size", *size);
  if (!values.at("layer_types").is_null()) return true;

  const auto layers = layer_count(values);
  const Json& attention = values.at("full_attn_idxs");
  if (!layers || (!attention.is_null() && !attention.is_list())) return false;
  Json::List types(static_cast<std::size_t>(*layers), attention.is_null() ? "full_attention" : "conv");
  if (attention.is_list()) {
    for (const Json& layer : attention.list()) {
      const auto number = whole_number(&layer);
      if (number && *number >= 0 && *number < *layers) types[static_cast<std::size_t>(*number)] = "full_attention";
    }
  }
  values.set("layer_types", std::move(types));
  return true;
}

bool half_the_window_each_way(Json& values, const Json& /*given*/) {
  if (!is_true(values.find("use_bidirectional_attention"))) return true;
  const auto window = whole_number(values.find("sliding_window"));
  if (!window || *window < 0) return false;
  values.set("sliding_window", *window / 2 + 1);
  return true;
}

bool gpt_neox_rotary(Json& values, const Json& /*given*/) {
  values.set("partial_rotary_factor", values.at("rotary_pct"));
  values.set("rope_theta", values.at("rotary_emb_base"));
  return true;
}

// The class has another name for it, which its own default wins over.
bool rope_theta_is_global(Json& values, const Json& /*given*/) {
  values.erase("rope_theta");
  return true;
}

bool falcon_old_names(Json& values, const Json& given) {
  if (const Json* size = given.find("n_embed"); !is_null(size)) values.set("hidden_size", *size);
  values.erase("n_embed");
  if (is_null(values.find("num_kv_heads"))) values.set("num_kv_heads", values.at("num_attention_heads"));
  return true;
}

// The feed forward part is "relu" or "gated-gelu", say.
bool t5_decoder(Json& values, const Json& /*given*/) {
  if (is_null(values.find("num_decoder_layers"))) values.set("num_decoder_layers", values.at("num_layers"));
  const Json& feed_forward = values.at("feed_forward_proj");
  if (!feed_forward.is_text()) return false;
  const std::string_view text = feed_forward.text();
  const std::size_t dash = text.find('-');
  return dash == std::string_view::npos ||
         (text.substr(0, dash) == "gated" && text.find('-', dash + 1) == std::string_view::npos);
}

}  // namespace ballast::llamacpp
