// The steps that look at rope_scaling.
#include <algorithm>
#include <array>
#include <string_view>

#include "llamacpp/config/config_steps.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp {
namespace {

// The keys that each type must have, besides rope_type. Types that are not here may have any.
struct RopeTypeKeys {
  std::string_view type;
  std::array<std::string_view, 4> keys;
};
constexpr RopeTypeKeys kRopeTypeKeys[] = {
    {"default", {}},
    {"linear", {"factor"}},
    {"dynamic", {"factor"}},
    {"yarn", {"factor"}},
    {"longrope", {"short_factor", "long_factor"}},
    {"llama3", {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"}},
};

const Json* type_of_scaling(const Json& scaling) {
  const Json* type = scaling.find("rope_type");
  return type != nullptr ? type : scaling.find("type");
}

// The classes look closer at some values, and break at those that are not of the right kind.
bool values_can_be_compared(std::string_view type, const Json& scaling, const Json& values) {
  const auto original = scaling.find("original_max_position_embeddings");
  if (type == "yarn" && !is_null(original)) {
    return real_number(original).value_or(0) != 0 && real_number(values.find("max_position_embeddings"));
  }
  if (type == "longrope") return scaling.at("short_factor").is_list() && scaling.at("long_factor").is_list();
  if (type == "llama3") {
    return real_number(original) && real_number(values.find("max_position_embeddings")) &&
           real_number(scaling.find("low_freq_factor")) && real_number(scaling.find("high_freq_factor"));
  }
  return true;
}

bool is_list_of_numbers(const Json* list, std::int64_t count) {
  return list != nullptr && list->is_list() && static_cast<std::int64_t>(list->list().size()) == count &&
         std::ranges::all_of(list->list(), [](const Json& item) { return item.is_number() || item.is_bool(); });
}

// The half of the rotary part of a head.
std::optional<std::int64_t> phi3_factor_count(const Json& values) {
  const auto hidden_size = whole_number(values.find("hidden_size"));
  const auto heads = whole_number(values.find("num_attention_heads"));
  const auto part = real_number(values.find("partial_rotary_factor"));
  if (!hidden_size || !heads || *heads <= 0 || !part) return std::nullopt;
  const std::int64_t head_size = *hidden_size / *heads;
  const auto rotary = truncated(static_cast<double>(head_size) * *part);
  if (!rotary) return std::nullopt;
  return *rotary / 2;
}

}  // namespace

bool rope_type_of_type(Json& values, const Json& /*given*/) {
  const Json* scaling = values.find("rope_scaling");
  if (is_null(scaling)) return true;
  if (!scaling->is_object()) return false;
  if (const Json* type = scaling->find("type")) {
    Json changed = *scaling;
    changed.set("rope_type", *type);
    values.set("rope_scaling", std::move(changed));
  }
  return true;
}

bool rope_scaling_has_its_keys(Json& values, const Json& /*given*/) {
  const Json* scaling = values.find("rope_scaling");
  if (is_null(scaling)) return true;
  if (!scaling->is_object()) return false;
  const Json* type = type_of_scaling(*scaling);
  if (type != nullptr && !type->is_text()) return type->is_null();
  const std::string_view name = type == nullptr ? "default" : std::string_view(type->text());
  const auto* row = std::ranges::find(kRopeTypeKeys, name, &RopeTypeKeys::type);
  if (row == std::end(kRopeTypeKeys)) return true;
  const auto has = [&](std::string_view key) { return key.empty() || scaling->find(key) != nullptr; };
  return has("rope_type") && std::ranges::all_of(row->keys, has) && values_can_be_compared(name, *scaling, values);
}

bool mrope_is_default(Json& values, const Json& /*given*/) {
  const Json* scaling = values.find("rope_scaling");
  const Json* type = scaling == nullptr ? nullptr : scaling->find("type");
  if (type == nullptr || !type->is_text() || type->text() != "mrope") return true;
  Json changed = *scaling;
  changed.set("type", "default");
  values.set("rope_scaling", std::move(changed));
  return true;
}

bool phi3_rope_scaling(Json& values, const Json& /*given*/) {
  if (is_null(values.find("rope_scaling"))) return true;
  Json scaling = values.at("rope_scaling");
  const Json* type = scaling.find("type");
  if (type == nullptr || !type->is_text() || scaling.members().size() != 3) return false;
  if (type->text() == "su" || type->text() == "yarn") {
    scaling.set("type", "longrope");
    values.set("rope_scaling", scaling);
  }
  const auto count = phi3_factor_count(values);
  return scaling.at("type").text() == "longrope" && count && is_list_of_numbers(scaling.find("short_factor"), *count) &&
         is_list_of_numbers(scaling.find("long_factor"), *count);
}

bool phimoe_rope_scaling(Json& values, const Json& /*given*/) {
  const Json* found = values.find("rope_scaling");
  if (found == nullptr || !found->is_object()) return is_null(found);
  Json scaling = *found;
  if (scaling.find("rope_type") == nullptr) {
    const Json* type = scaling.find("type");
    scaling.set("rope_type", type == nullptr ? Json() : *type);
  }
  values.set("rope_scaling", scaling);
  const Json* original = scaling.find("original_max_position_embeddings");
  if (original != nullptr) values.set("original_max_position_embeddings", *original);
  return real_number(scaling.find("short_mscale")) && real_number(scaling.find("long_mscale"));
}

// Exactly two keys, "linear" or "dynamic", and a factor that is written with a point.
bool olmo_rope_scaling(Json& values, const Json& /*given*/) {
  const Json* scaling = values.find("rope_scaling");
  if (is_null(scaling)) return true;
  const Json* type = scaling->find("type");
  const Json* factor = scaling->find("factor");
  return scaling->is_object() && scaling->members().size() == 2 && type != nullptr && type->is_text() &&
         (type->text() == "linear" || type->text() == "dynamic") && factor != nullptr && factor->is_double() &&
         factor->number() > 1.0;
}

}  // namespace ballast::llamacpp
