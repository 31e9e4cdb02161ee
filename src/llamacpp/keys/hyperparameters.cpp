#include "llamacpp/keys/hyperparameters.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "llamacpp/config/json_values.hpp"
#include "llamacpp/keys/key_rows.hpp"
#include "llamacpp/keys/metadata_values.hpp"

namespace ballast::llamacpp {
namespace {

constexpr std::uint32_t kQuantizationVersion = 2;
constexpr std::uint32_t kFileTypeMxfp4 = 38;

// Files of plain types count as MXFP4 if that is what the model is stored in: it stays as it is.
std::uint32_t file_type_of_model(const ModelConfig& config, std::uint32_t asked) {
  const Json* quantization = config.find("quantization_config");
  const Json* method = quantization == nullptr ? nullptr : quantization->find("quant_method");
  const bool is_mxfp4 = method != nullptr && method->is_text() && method->text() == "mxfp4";
  const bool is_plain = asked == 0 || asked == 1 || asked == 32;  // F32, F16, BF16
  return is_mxfp4 && is_plain ? kFileTypeMxfp4 : asked;
}

std::string full_key(const HyperModel& model, std::string_view key) {
  if (key.starts_with("general.") || key.starts_with("tokenizer.")) return std::string(key);
  return fmt::format("{}.{}", model.config.architecture, key);
}

MetadataEntry make_key_entry(const std::string& key, KeyKind kind, const Json& value) {
  switch (kind) {
    case KeyKind::count: return u32_entry(key, value);
    case KeyKind::count_or_counts: return value.is_list() ? list_entry(key, value) : u32_entry(key, value);
    case KeyKind::real: return f32_entry(key, value);
    case KeyKind::boolean: return MetadataEntry::of(key, is_true(&value));
    case KeyKind::text: return MetadataEntry::of(key, value.text());
    case KeyKind::list: return list_entry(key, value);
  }
  throw Error(Errc::invalid_argument, "no such kind of key");
}

// Empty texts and lists are never written.
bool is_empty_value(const Json& value) {
  return (value.is_text() && value.text().empty()) || (value.is_list() && value.list().empty());
}

Json value_of_row(const HyperModel& model, const KeyRow& row) {
  if (row.value != nullptr) return row.value(model);
  const Json* found = model.config.find_first(row.sources);
  if (found == nullptr && !row.otherwise.empty()) return Json::parse(row.otherwise);
  return found == nullptr ? Json() : *found;
}

HyperModel prepare_model(const ModelFolder& folder, const ModelConfig& config, std::uint32_t file_type,
                         TypedMetadata& out, std::vector<Note>& notes) {
  HyperModel model{folder, config, rope_parameters(config), 0, 0, file_type_of_model(config, file_type), out, notes};
  model.blocks = config.count("n_layers num_hidden_layers n_layer num_layers");
  return model;
}

void write_architecture(const ArchitectureKeys& keys, HyperModel& model) {
  if (keys.prepare != nullptr) keys.prepare(model);
  for (const auto& table : keys.tables) {
    for (const KeyRow& row : table) write_row(model, row);
  }
}

}  // namespace

void write_key(HyperModel& model, std::string_view key, KeyKind kind, const Json* value) {
  if (is_null(value) || is_empty_value(*value)) return;
  model.out.set(make_key_entry(full_key(model, key), kind, *value));
}

void write_row(HyperModel& model, const KeyRow& row) {
  if (row.write != nullptr) return row.write(model);
  const Json value = value_of_row(model, row);
  if (row.need == KeyNeed::if_true && !is_true(&value)) return;
  if (row.need == KeyNeed::required && value.is_null()) {
    const std::string_view usual = row.sources.substr(0, row.sources.find(' '));
    throw Error(Errc::malformed, fmt::format("it has no {}, which {} needs", quote(usual), full_key(model, row.key)));
  }
  write_key(model, row.key, row.kind, &value);
}

void add_hyperparameters(const ModelFolder& folder, const ModelConfig& config, std::uint32_t file_type,
                         TypedMetadata& out, std::vector<Note>& notes) {
  const ArchitectureKeys* keys = find_architecture_keys(config.architecture);
  try {
    if (keys == nullptr) {
      throw Error(Errc::unsupported,
                  fmt::format("models of class {} are not known well enough to be written for llama.cpp",
                              quote(config.class_name)));
    }
    HyperModel model = prepare_model(folder, config, file_type, out, notes);
    write_architecture(*keys, model);
  } catch (Error& error) {
    throw error.in(folder.path("config.json"));
  }
  out.set(MetadataEntry::of("general.quantization_version", kQuantizationVersion));
}

void add_early_keys(const ModelConfig& config, TypedMetadata& out) {
  if (config.architecture != "phi3" && config.architecture != "phimoe") return;
  const Json rope = rope_parameters(config);
  if (!is_true(rope.find("long_factor"))) return;
  const double positions = config.number("n_positions max_position_embeddings");
  const auto original = real_number(rope.find("original_max_position_embeddings"));
  if (!original || *original <= 1) {
    throw Error(Errc::malformed, "it has no \"original_max_position_embeddings\"").in("config.json");
  }
  const Json* type = rope.find("rope_type");
  const std::string name = lower_case(type != nullptr && type->is_text() ? type->text() : "");
  const bool is_longrope = name == "su" || name == "longrope";
  if (!is_longrope && name != "yarn") {
    throw Error(Errc::unsupported, fmt::format("rotary positions of type {} with factors for long texts", quote(name)))
        .in("config.json");
  }
  const double scale = positions / *original;
  const double longer = is_longrope ? std::sqrt(1 + std::log(scale) / std::log(*original)) : 0.1 * std::log(scale) + 1;
  out.set(f32_entry(config.architecture + ".rope.scaling.attn_factor", Json(scale > 1.0 ? longer : 1.0)));
}

}  // namespace ballast::llamacpp
