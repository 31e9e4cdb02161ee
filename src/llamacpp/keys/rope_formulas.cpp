// Formulas about rotary positions.
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/config/json_values.hpp"
#include "llamacpp/keys/key_formulas.hpp"
#include "llamacpp/keys/metadata_values.hpp"

namespace ballast::llamacpp::formulas {
namespace {

constexpr std::size_t kSectionCount = 4;

std::uint64_t size_of_head(const HyperModel& model) {
  const std::uint64_t heads = model.config.count("num_attention_heads n_head");
  if (heads == 0) throw Error(Errc::malformed, "it has no attention heads (\"num_attention_heads\")");
  return model.config.count("hidden_size n_embd") / heads;
}

std::uint64_t head_dim_or_usual(const HyperModel& model) {
  return is_null(model.config.find("head_dim")) ? size_of_head(model) : model.config.count("head_dim");
}

Json whole_part(double size) {
  const auto whole = truncated(size);
  if (!whole || *whole < 0) throw Error(Errc::malformed, "the rotary part of a head is not a number of dimensions");
  return *whole;
}

// The part of a head that is rotated.
double rotary_part(const HyperModel& model, double otherwise) {
  const Json* part = model.rope.find("partial_rotary_factor");
  if (part == nullptr) return otherwise;
  const auto number = real_number(part);
  if (!number) throw Error(Errc::malformed, "\"partial_rotary_factor\" is not a number");
  return *number;
}

double required_rotary_part(const HyperModel& model) {
  if (model.rope.find("partial_rotary_factor") == nullptr) {
    throw Error(Errc::malformed, "it has no \"partial_rotary_factor\"");
  }
  return rotary_part(model, 0);
}

// The part is taken of all heads together, which rounds otherwise.
Json part_of_all_heads(const HyperModel& model, double part) {
  const std::uint64_t heads = model.config.count("num_attention_heads n_head");
  if (heads == 0) throw Error(Errc::malformed, "it has no attention heads (\"num_attention_heads\")");
  const Json all = whole_part(part * static_cast<double>(model.config.count("hidden_size n_embd")));
  return all.count() / heads;
}

Json optional_member(const Json& of, std::string_view key) {
  const Json* found = of.find(key);
  return found == nullptr ? Json() : *found;
}

const Json& required_member(const Json& of, std::string_view key) {
  const Json* found = of.find(key);
  if (is_null(found)) throw Error(Errc::malformed, fmt::format("its rotary positions have no {}", quote(key)));
  return *found;
}

void write_yarn(HyperModel& model, const Json& rope) {
  write_key(model, "rope.scaling.original_context_length", KeyKind::count,
            &required_member(rope, "original_max_position_embeddings"));
  constexpr std::pair<std::string_view, std::string_view> kOptional[] = {
      {"rope.scaling.yarn_ext_factor", "extrapolation_factor"},
      {"rope.scaling.yarn_attn_factor", "attention_factor attn_factor"},
      {"rope.scaling.yarn_beta_fast", "beta_fast"},
      {"rope.scaling.yarn_beta_slow", "beta_slow"},
  };
  for (const auto& [key, sources] : kOptional) write_key(model, key, KeyKind::real, find_first(rope, sources));
}

bool is_ministral3(const HyperModel& model) {
  const Json* type = model.config.find("model_type");
  return type != nullptr && *type == Json("ministral3");
}

}  // namespace

void write_rope_scaling(HyperModel& model) {
  const Json& rope = of_full_attention(model.rope);
  const Json* type = rope.find("rope_type");
  if (is_null(type)) return;
  if (!type->is_text()) throw Error(Errc::malformed, "the type of its rotary positions is not a text (\"rope_type\")");

  const std::string& name = type->text();
  const Json* factor = rope.find("factor");
  const bool is_scaled = (name == "linear" || name == "yarn") && !is_null(factor);
  const bool is_longrope = name == "su" || name == "longrope";
  if (is_scaled || is_longrope) {
    const Json written(is_longrope ? "longrope" : name);
    write_key(model, "rope.scaling.type", KeyKind::text, &written);
  }
  if (is_scaled) write_key(model, "rope.scaling.factor", KeyKind::real, factor);
  if (is_scaled && name == "yarn") write_yarn(model, rope);

  const bool is_written_elsewhere = name == "default" || name == "dynamic" || lower_case(name) == "llama3";
  if (is_scaled || is_longrope || is_written_elsewhere) return;
  model.notes.push_back({model.folder.path("config.json"),
                         fmt::format("rotary positions of type {} are not told to llama.cpp", quote(name)),
                         Note::Kind::oddity,
                         {}});
}

Json rope_sections(const HyperModel& model) {
  const Json* given = model.rope.find("mrope_section");
  if (given == nullptr) return {};
  Json::List sections = given->list();
  sections.resize(kSectionCount, Json(0));
  return sections;
}

Json default_sections(const HyperModel& model) {
  if (model.rope.find("mrope_section") != nullptr) return {};
  return Json::List{11, 11, 10, 0};
}

Json rope_theta(const HyperModel& model) { return optional_member(of_full_attention(model.rope), "rope_theta"); }

Json rope_theta_required(const HyperModel& model) {
  return required_member(of_full_attention(model.rope), "rope_theta");
}

Json rope_theta_of_windows(const HyperModel& model) {
  const Json* sliding = model.rope.find("sliding_attention");
  return sliding == nullptr ? Json() : optional_member(*sliding, "rope_theta");
}

Json rope_theta_or_million(const HyperModel& model) {
  const Json* theta = of_full_attention(model.rope).find("rope_theta");
  return theta == nullptr ? Json(1e6) : *theta;
}

Json rope_none(const HyperModel& /*model*/) { return "none"; }

Json rope_original_length(const HyperModel& model) {
  return required_member(model.rope, "original_max_position_embeddings");
}

Json rope_dimensions(const HyperModel& model) { return head_dim_or_usual(model); }

Json rope_dimensions_half(const HyperModel& model) {
  return whole_part(static_cast<double>(head_dim_or_usual(model)) * rotary_part(model, 0.5));
}

Json rope_dimensions_quarter(const HyperModel& model) {
  return whole_part(static_cast<double>(head_dim_or_usual(model)) * rotary_part(model, 0.25));
}

Json rope_dimensions_phi(const HyperModel& model) { return part_of_all_heads(model, required_rotary_part(model)); }

Json rope_dimensions_phi3(const HyperModel& model) { return part_of_all_heads(model, rotary_part(model, 1.0)); }

Json rope_dimensions_stablelm(const HyperModel& model) {
  return whole_part(required_rotary_part(model) * static_cast<double>(size_of_head(model)));
}

Json rope_dimensions_percent(const HyperModel& model) {
  return whole_part(model.config.number("rotary_pct") * static_cast<double>(size_of_head(model)));
}

// llama.cpp multiplies it by ten again, for old files' sake.
Json tenth_of_mscale(const HyperModel& model) {
  const Json* scale = model.rope.find("mscale_all_dim");
  if (is_null(scale)) return {};
  const auto number = real_number(scale);
  if (!number) throw Error(Errc::malformed, "\"mscale_all_dim\" is not a number");
  return 0.1 * *number;
}

Json mscale_of_ministral(const HyperModel& model) {
  return is_ministral3(model) ? required_member(model.rope, "mscale_all_dim") : Json();
}

Json temperature_of_ministral(const HyperModel& model) {
  return is_ministral3(model) ? required_member(model.rope, "llama_4_scaling_beta") : Json();
}

void prepare_ministral(HyperModel& model) {
  if (!is_ministral3(model)) return;
  const Json* type = model.rope.find("rope_type");
  if (type != nullptr && *type == Json("yarn")) return;
  throw Error(Errc::unsupported, "it is a ministral3 whose rotary positions are not of type \"yarn\"");
}

}  // namespace ballast::llamacpp::formulas
