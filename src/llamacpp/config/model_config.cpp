#include "llamacpp/config/model_config.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/config/auto_config.hpp"
#include "llamacpp/config/json_values.hpp"

namespace ballast::llamacpp {
namespace {

// Real ones have about a hundred.
constexpr std::size_t kMostConfigKeys = 4096;

Error config_error(Errc code, std::string message) { return {code, std::move(message)}; }

void require_few_keys(const Json& object) {
  if (object.is_object() && object.members().size() > kMostConfigKeys) {
    throw config_error(Errc::limit, fmt::format("more than {} keys in one object", kMostConfigKeys));
  }
}

// Where other families have the language model's part. The later ones win.
Json text_part_in_its_place(Json config) {
  for (const std::string_view name : {"llm_config", "lm_config", "thinker_config", "language_config", "lfm"}) {
    const Json* part = config.find(name);
    if (part == nullptr) continue;
    config.set("text_config", name == "thinker_config" ? part->at("text_config") : Json(*part));
  }
  return config;
}

std::optional<std::string> first_class(const Json& config) {
  const Json* classes = config.find("architectures");
  if (classes == nullptr || !classes->is_list() || classes->list().empty()) return std::nullopt;
  return classes->list().front().text();
}

std::string class_of(const Json& config) {
  // Their language models are of a class that llama.cpp takes for something else.
  constexpr std::string_view kTakenWhole[] = {"StepVLForConditionalGeneration", "Sarashina2VisionForCausalLM",
                                              "Exaone4_5_ForConditionalGeneration", "Step3p7ForConditionalGeneration",
                                              "KimiK3ForConditionalGeneration"};
  auto name = first_class(config);
  if (!name && config.find("ssm_cfg") != nullptr) {
    const Json* layer = config.at("ssm_cfg").find("layer");
    name = (layer == nullptr ? "Mamba" : layer->text()) + "ForCausalLM";
  }
  const bool is_taken_whole = name && std::ranges::find(kTakenWhole, *name) != std::end(kTakenWhole);
  const Json* text = config.find("text_config");
  if (text != nullptr && !is_taken_whole) {
    if (auto own = first_class(*text)) name = std::move(own);
  }
  if (!name) throw config_error(Errc::malformed, "it does not say of which class the model is (\"architectures\")");
  return *name;
}

bool is_one_of_names(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Some classes are more than one architecture.
std::string_view architecture_of_values(const ModelConfig& config) {
  const std::string_view name = config.class_name;
  const Json* type = config.find("model_type");
  const bool is_mistral4 = type != nullptr && type->is_text() && type->text() == "mistral4";
  if (name == "NomicBertModel") return is_true(config.find("moe_every_n_layers")) ? "nomic-bert-moe" : "nomic-bert";
  if (name.starts_with("XLMRoberta") && is_true(config.find("lora_adaptations"))) return "jina-bert-v3";
  if (is_one_of_names(name, {"Mistral3ForConditionalGeneration", "Ministral3ForCausalLM"}) && is_mistral4)
    return "mistral4";
  if (is_one_of_names(name, {"DeepseekOCRForCausalLM", "UnlimitedOCRForCausalLM"})) return "deepseek2-ocr";
  const std::string_view usual = architecture_of(name);
  const bool has_one_layer = whole_number(config.find("num_hidden_layers")) == 1;
  if (usual == "llama" && has_one_layer && config.find("draft_vocab_size") != nullptr) return "eagle3";
  return usual;
}

// Mamba's values are taken as the file has them: transformers' class makes too much of them.
bool is_taken_as_it_is(std::string_view class_name) {
  return is_one_of_names(architecture_of(class_name), {"mamba", "mamba2"});
}

}  // namespace

const Json* find_first(const Json& values, std::string_view keys) {
  while (!keys.empty()) {
    const std::size_t end = keys.find(' ');
    if (const Json* found = values.find(keys.substr(0, end))) return found;
    keys = end == std::string_view::npos ? std::string_view() : keys.substr(end + 1);
  }
  return nullptr;
}

const Json* ModelConfig::find_first(std::string_view keys) const { return llamacpp::find_first(values, keys); }

// People know the key by its usual name.
static std::string_view first_word(std::string_view keys) { return keys.substr(0, keys.find(' ')); }

std::uint64_t ModelConfig::count(std::string_view keys) const {
  const auto found = whole_number(find_first(keys));
  if (!found || *found < 0 || *found > std::numeric_limits<std::uint32_t>::max()) {
    throw config_error(Errc::malformed, fmt::format("{} is not a whole number below 2^32", quote(first_word(keys))))
        .in("config.json");
  }
  return static_cast<std::uint64_t>(*found);
}

double ModelConfig::number(std::string_view keys) const {
  const auto found = real_number(find_first(keys));
  if (!found)
    throw config_error(Errc::malformed, fmt::format("{} is not a number", quote(first_word(keys)))).in("config.json");
  return *found;
}

ModelConfig make_model_config(const Json& raw, const std::string& folder_name) {
  if (!raw.is_object()) throw config_error(Errc::malformed, "it is not a JSON object");
  require_few_keys(raw);
  for (const auto& [key, part] : raw.members()) require_few_keys(part);

  ModelConfig config;
  config.raw = raw;
  auto read = read_auto_config(raw, folder_name);
  config.has_defaults = read.has_value();
  Json whole = text_part_in_its_place(read.value_or(raw));
  config.class_name = class_of(whole);
  if (is_taken_as_it_is(config.class_name)) whole = raw;
  config.values = whole;
  if (const Json* text = whole.find("text_config")) {
    require_few_keys(*text);
    for (const auto& [key, value] : text->members()) config.values.set(key, value);
  }
  config.architecture = architecture_of_values(config);
  return config;
}

ModelConfig read_model_config(const ModelFolder& folder) {
  const auto raw = folder.json("config.json");
  if (!raw) {
    throw config_error(Errc::not_found, "the model has no config.json, which says what its tensors are")
        .in(folder.path("config.json"))
        .hint("convert the folder that the model was published in");
  }
  try {
    return make_model_config(*raw, folder.name());
  } catch (Error& error) {
    throw error.in(folder.path("config.json"));
  }
}

void count_guessing_blocks(ModelConfig& config, std::span<const std::string_view> tensor_names) {
  config.guessing_blocks = 0;
  for (std::string_view name : tensor_names) {
    if (name.starts_with("model.mtp.")) name.remove_prefix(6);
    if (!name.starts_with("mtp.layers.")) continue;
    name.remove_prefix(std::string_view("mtp.layers.").size());
    std::uint32_t number = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed != std::errc() || end == name.data() + name.size() || *end != '.') continue;
    config.guessing_blocks = std::max<std::uint64_t>(config.guessing_blocks, std::uint64_t{number} + 1);
  }
}

Json rope_parameters(const ModelConfig& config) {
  const Json* found = config.find_first("rope_parameters rope_scaling");
  if (is_true(found) && !found->is_object()) {
    throw config_error(Errc::malformed, "\"rope_parameters\" or \"rope_scaling\" is not an object").in("config.json");
  }
  Json rope = is_true(found) ? *found : Json(Json::Members());
  if (rope.find("full_attention") != nullptr || rope.find("sliding_attention") != nullptr) return rope;

  const auto copy = [&rope](std::string_view key, const Json* value) {
    if (!is_null(value) && rope.find(key) == nullptr) rope.set(key, *value);
  };
  const Json* local =
      config.find_first("local_rope_theta rope_local_theta rope_theta_local swa_rope_theta rope_local_base_freq");
  if (!is_null(local)) rope.set("sliding_attention", Json::Members{{"rope_theta", *local}});
  copy("rope_theta", config.find_first("global_rope_theta rope_global_theta rope_theta_global rope_theta "
                                       "rotary_emb_base"));
  copy("rope_type", rope.find("type"));
  copy("partial_rotary_factor", config.find_first("partial_rotary_factor rope_pct rope_percent"));
  copy("original_max_position_embeddings", config.find("original_max_position_embeddings"));
  return rope;
}

const Json& of_full_attention(const Json& rope_parameters) {
  const Json* found = rope_parameters.find("full_attention");
  return found == nullptr ? rope_parameters : *found;
}

}  // namespace ballast::llamacpp
