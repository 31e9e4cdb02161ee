// Rotary positions: the base, the types of scaling, and the factors that are tensors in a GGUF.
#include <algorithm>
#include <string_view>
#include <utility>

#include "llamacpp/back/back_model.hpp"
#include "llamacpp/back/llama3_factors.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp::back {
namespace {

constexpr std::string_view kBaseNames = "global_rope_theta rope_theta rotary_emb_base";
constexpr double kUsualBase = 10000;  // llama.cpp's, if nothing is said

bool is_one_of_types(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

// Newer configurations have all of it in one object.
bool has_it_together(const BackModel& model) {
  return is_one_of_types(model.of.model_type, {"ministral3", "qwen3_5_text", "qwen3_5_moe_text"});
}

// Some classes know only the older name.
std::string_view name_of_type(const BackModel& model) {
  const bool is_older =
      is_one_of_types(model.of.model_type, {"olmo", "olmo2", "phi3", "phimoe", "internlm2", "minicpm"});
  return is_older ? "type" : "rope_type";
}

Json list_of(const std::vector<float>& factors) {
  Json::List list;
  for (const float factor : factors) list.emplace_back(shortest(factor));
  return list;
}

Json longrope(BackModel& model, const std::vector<float>& long_ones, const std::vector<float>& short_ones) {
  Json scaling;
  scaling.set(name_of_type(model), "longrope");
  scaling.set("long_factor", list_of(long_ones));
  scaling.set("short_factor", list_of(short_ones));
  model.told.insert(model.told.end(), {"rope_factors_long.weight", "rope_factors_short.weight"});
  if (model.of.model_type == "phimoe") {
    const Json factor = model.facts.value("rope.scaling.attn_factor");
    for (const std::string_view name : {"long_mscale", "short_mscale"}) {
      scaling.set(name, factor.is_null() ? Json(1.0) : factor);
      model.likely.push_back("rope_scaling." + std::string(name));
    }
  }
  if (model.of.model_type != "phi3") {
    const auto original = model.facts.count("rope.scaling.original_context_length");
    if (original) scaling.set("original_max_position_embeddings", *original);
    if (!original) model.likely.emplace_back("rope_scaling.original_max_position_embeddings");
  }
  return scaling;
}

Json yarn(BackModel& model, const Json& factor) {
  Json scaling;
  scaling.set(name_of_type(model), "yarn");
  scaling.set("factor", factor);
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"original_max_position_embeddings", "rope.scaling.original_context_length"},
      {"extrapolation_factor", "rope.scaling.yarn_ext_factor"},
      {"attention_factor", "rope.scaling.yarn_attn_factor"},
      {"beta_fast", "rope.scaling.yarn_beta_fast"},
      {"beta_slow", "rope.scaling.yarn_beta_slow"},
  };
  for (const auto& [name, key] : kParts) {
    const Json value = model.facts.value(key);
    if (!value.is_null()) scaling.set(name, value);
  }
  for (const auto& [name, value] : model.rope.members()) scaling.set(name, value);
  if (model.of.model_type == "gpt_oss") scaling.set("truncate", false);
  return scaling;
}

Json scaling_of(BackModel& model, double base) {
  const auto long_ones = model.facts.factors("rope_factors_long.weight");
  const auto short_ones = model.facts.factors("rope_factors_short.weight");
  if (!long_ones.empty() && !short_ones.empty()) return longrope(model, long_ones, short_ones);

  if (const auto factors = model.facts.factors("rope_freqs.weight"); !factors.empty()) {
    Json scaling = llama3_scaling(factors, base);
    if (!scaling.is_null()) model.told.emplace_back("rope_freqs.weight");
    if (scaling.is_null()) model.likely.emplace_back("rope_scaling");
    return scaling;
  }
  const std::string type = model.facts.text("rope.scaling.type");
  const Json older = model.facts.value("rope.scale_linear"), factor = model.facts.value("rope.scaling.factor");
  if (type == "yarn" && !factor.is_null()) return yarn(model, factor);
  const bool is_linear = type == "linear" && !factor.is_null(), is_older_linear = type.empty() && !older.is_null();
  if (type == "longrope") model.likely.emplace_back("rope_scaling");
  if (!is_linear && !is_older_linear) return {};
  Json scaling;
  scaling.set(name_of_type(model), "linear");
  scaling.set("factor", is_linear ? factor : older);
  return scaling;
}

// llama.cpp's default is written where the class has another.
Json base_of(const BackModel& model, std::string_view name) {
  Json said = model.facts.value("rope.freq_base");
  if (!said.is_null()) return said;
  const auto other = real_number(model.default_of(name));
  return other && *other != kUsualBase ? Json(kUsualBase) : Json();
}

Json sections_of(const BackModel& model) {
  constexpr std::size_t kUsualCount = 3;
  const Json found = model.facts.value("rope.dimension_sections");
  if (!found.is_list()) return {};
  Json::List sections = found.list();
  while (sections.size() > kUsualCount && sections.back() == Json(0)) sections.pop_back();
  return sections;
}

void set_together(BackModel& model, Json rope, const Json& base) {
  if (rope.is_null()) rope.set("rope_type", "default");
  if (!base.is_null()) rope.set("rope_theta", base);
  if (const Json* part = model.config.find("partial_rotary_factor")) {
    rope.set("partial_rotary_factor", *part);
    model.config.erase("partial_rotary_factor");
  }
  if (const Json sections = sections_of(model); !sections.is_null()) {
    rope.set("mrope_section", sections);
    rope.set("mrope_interleaved", true);
  }
  model.config.set("rope_parameters", std::move(rope));
}

}  // namespace

void add_rope(BackModel& model) {
  const std::string_view name = model.name_of(kBaseNames);
  const Json base = base_of(model, name);
  Json scaling = scaling_of(model, base.is_null() ? kUsualBase : base.number());
  if (has_it_together(model)) return set_together(model, std::move(scaling), base);

  model.set(name, base);
  model.set(model.name_of("local_rope_theta rope_local_base_freq"), model.facts.value("rope.freq_base_swa"));
  const bool has_default = !is_null(model.default_of("rope_scaling"));
  if (!scaling.is_null() || has_default) model.config.set("rope_scaling", std::move(scaling));
}

}  // namespace ballast::llamacpp::back
