#include "llamacpp/config/auto_config.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "llamacpp/config/config_classes.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp {
namespace {

// What every class has.
constexpr std::string_view kCommonDefaults =
    R"({"architectures":null,"tie_word_embeddings":true,"is_encoder_decoder":false,"tokenizer_class":null,)"
    R"("bos_token_id":null,"eos_token_id":null,"pad_token_id":null,"sep_token_id":null,)"
    R"("decoder_start_token_id":null,"max_length":20})";

// Models of several parts have the language model's configuration in one of their own, text_config.
struct PartedModel {
  std::string_view model_type;
  std::string_view text_type;      // of text_config
  bool text_has_its_type;          // text_config's own model_type comes first
  bool may_be_flat;                // without text_config, the language model's values stand in the root
  std::string_view text_defaults;  // instead of those of the class
};
constexpr PartedModel kPartedModels[] = {
    {"gemma3", "gemma3_text", false, false, "{}"},
    {"glm4v", "glm4v_text", false, true, "{}"},
    {"glm4v_moe", "glm4v_moe_text", false, true, "{}"},
    {"qwen2_vl", "qwen2_vl_text", false, true, "{}"},
    {"qwen2_5_vl", "qwen2_5_vl_text", false, true, "{}"},
    {"qwen3_vl", "qwen3_vl_text", false, false, "{}"},
    {"qwen3_vl_moe", "qwen3_vl_moe_text", false, false, "{}"},
    {"internvl", "qwen2", true, false, "{}"},
    {"janus", "llama", true, false, "{}"},
    {"lfm2_vl", "lfm2", true, false, "{}"},
    {"llava", "llama", true, false, "{}"},
    {"mistral3", "mistral", true, false, "{}"},
    {"voxtral", "llama", true, false,
     R"({"vocab_size":131072,"hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":30,)"
     R"("num_key_value_heads":8,"max_position_embeddings":131072,"rms_norm_eps":1e-05,"rope_theta":1e8,)"
     R"("head_dim":128})"},
};

constexpr std::string_view kTorchTypes[] = {"float32", "float16", "bfloat16", "float64",       "float",      "half",
                                            "double",  "int8",    "uint8",    "float8_e4m3fn", "float8_e5m2"};

const PartedModel* parted_model(std::string_view model_type) {
  const auto* row = std::ranges::find(kPartedModels, model_type, &PartedModel::model_type);
  return row == std::end(kPartedModels) ? nullptr : row;
}

bool has_known_dtype(const Json& given) {
  const Json* dtype = given.find("dtype");
  if (is_null(dtype)) dtype = given.find("torch_dtype");
  return dtype == nullptr || !dtype->is_text() ||
         std::ranges::find(kTorchTypes, dtype->text()) != std::end(kTorchTypes);
}

bool has_known_problem_type(const Json& given) {
  constexpr std::string_view kKnown[] = {"regression", "single_label_classification", "multi_label_classification"};
  const Json* type = given.find("problem_type");
  return is_null(type) || (type->is_text() && std::ranges::find(kKnown, type->text()) != std::end(kKnown));
}

std::optional<std::int64_t> label_number(std::string_view key) {
  const bool is_number = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::optional(std::stoll(std::string(key))) : std::nullopt;
}

// Labels are in the order of their numbers. A file without them gets two, or as many as it says.
bool complete_labels(Json& values, const Json& given) {
  constexpr std::int64_t kMostLabels = 1 << 16;
  std::vector<std::pair<std::int64_t, Json>> labels;
  if (const Json* found = given.find("id2label"); !is_null(found)) {
    if (!found->is_object()) return false;
    for (const auto& [key, label] : found->members()) {
      const auto number = label_number(key);
      if (!number) return false;
      labels.emplace_back(*number, label);
    }
    std::ranges::stable_sort(labels, {}, &std::pair<std::int64_t, Json>::first);
  } else {
    const Json* given_count = given.find("num_labels");
    const auto count = is_null(given_count) ? std::optional<std::int64_t>(2) : whole_number(given_count);
    if (!count || *count > kMostLabels) return false;
    for (std::int64_t i = 0; i < *count; ++i) labels.emplace_back(i, "LABEL_" + std::to_string(i));
  }
  Json::Members members;
  for (auto& [number, label] : labels) members.emplace_back(std::to_string(number), std::move(label));
  values.set("id2label", std::move(members));
  return true;
}

void overlay_values(Json& values, const Json& over) {
  for (const auto& [key, value] : over.members()) values.set(key, value);
}

// What all classes do, with or without defaults of their own.
std::optional<Json> common_values(const Json& given, std::string_view defaults) {
  if (!has_known_dtype(given) || !has_known_problem_type(given)) return std::nullopt;
  Json values = Json::parse(kCommonDefaults);
  overlay_values(values, Json::parse(defaults));
  overlay_values(values, given);
  if (!complete_labels(values, given)) return std::nullopt;
  return values;
}

std::optional<Json> read_by_class(const ConfigClass& of, const Json& given) {
  auto values = common_values(given, of.defaults);
  if (!values) return std::nullopt;
  for (const auto& [other, own] : of.other_names) {
    if (const Json* found = given.find(other)) values->set(own, *found);
    values->erase(other);
  }
  for (const ConfigStep step : of.steps) {
    if (step != nullptr && !step(*values, given)) return std::nullopt;
  }
  values->set("model_type", of.model_type);
  return values;
}

std::optional<Json> read_text_part(const PartedModel& of, const Json& given) {
  const Json* part = given.find("text_config");
  if (!is_null(part) && !part->is_object()) return std::nullopt;
  Json values = Json::parse(of.text_defaults);
  if (!is_null(part)) overlay_values(values, *part);
  if (is_null(part) && of.may_be_flat) overlay_values(values, given);

  const Json* type = is_null(part) || !of.text_has_its_type ? nullptr : part->find("model_type");
  if (type != nullptr && !type->is_text()) return std::nullopt;
  const ConfigClass* text_class = config_class(type == nullptr ? of.text_type : std::string_view(type->text()));
  return text_class == nullptr ? std::nullopt : read_by_class(*text_class, values);
}

std::optional<Json> read_parts(const PartedModel& of, const Json& given) {
  auto text = read_text_part(of, given);
  auto values = common_values(given, "{}");
  if (!text || !values) return std::nullopt;
  values->set("text_config", std::move(*text));
  values->set("model_type", of.model_type);
  return values;
}

std::optional<Json> read_as_type(std::string_view model_type, const Json& given) {
  if (const PartedModel* parted = parted_model(model_type)) return read_parts(*parted, given);
  const ConfigClass* of = config_class(model_type);
  return of == nullptr ? std::nullopt : read_by_class(*of, given);
}

// The longest model type that is part of the name.
std::string_view model_type_in_name(std::string_view name) {
  const ConfigClass* of = config_class_in_name(name);
  std::string_view longest = of == nullptr ? std::string_view() : of->model_type;
  for (const PartedModel& row : kPartedModels) {
    const bool is_in_name = name.find(row.model_type) != std::string_view::npos;
    if (is_in_name && row.model_type.size() > longest.size()) longest = row.model_type;
  }
  return longest;
}

}  // namespace

std::optional<Json> read_auto_config(const Json& given, std::string_view folder_name) {
  const Json* own_code = given.find("auto_map");
  if (own_code != nullptr && !own_code->is_object()) return std::nullopt;
  const Json* type = given.find("model_type");
  // A model that brings its own code and names no type is of no class that is known.
  if (type == nullptr && own_code != nullptr && own_code->find("AutoConfig") != nullptr) return std::nullopt;
  if (type != nullptr) return type->is_text() ? read_as_type(type->text(), given) : std::nullopt;
  return read_as_type(model_type_in_name(folder_name), given);
}

}  // namespace ballast::llamacpp
