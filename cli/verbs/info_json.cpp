#include "info_json.hpp"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <ballast/dequantize.hpp>
#include <ballast/text.hpp>

#include "../place.hpp"
#include "../remedies.hpp"
#include "../terminal.hpp"

namespace ballast::cli {
namespace {

using Layout = JsonWriter::Layout;

void write_dtypes(JsonWriter& json, const Summary& summary) {
  json.key("dtypes");
  json.begin_object(Layout::lines);
  for (const auto& total : summary.dtypes) {
    json.key(name(total.dtype));
    json.begin_object();
    json.field("tensors", total.tensors);
    json.field("bytes", total.bytes);
    json.end();
  }
  json.end();
}

void write_patterns(JsonWriter& json, const Summary& summary) {
  json.key("patterns");
  json.begin_array(Layout::lines);
  for (const auto& pattern : summary.patterns) {
    json.begin_object();
    json.field("name", pattern.name);
    json.field("dtype", name(pattern.dtype));
    json.array_field("shape", pattern.shape);
    json.field("tensors", pattern.tensors);
    json.field("bytes", pattern.bytes);
    json.end();
  }
  json.end();
}

// Writes the subtrees if the file's own nesting is known; otherwise the first parts of dotted names.
void write_roots(JsonWriter& json, const Checkpoint& checkpoint, const Summary& summary) {
  if (checkpoint.roots.empty()) return json.array_field("roots", summary.roots);
  std::vector<std::string> paths;
  for (const Root& root : checkpoint.roots) paths.push_back(root.path);
  json.array_field("roots", paths);
}

void write_value(JsonWriter& json, const PlainValue& value) {
  json.begin_object();
  json.field("path", value.path);
  json.field("type", value.type);
  std::visit(
      [&](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          json.field("value", nullptr);
        else
          json.field("value", held);
      },
      value.value);
  json.end();
}

void write_composites(JsonWriter& json, const Checkpoint& checkpoint) {
  json.key("composites");
  json.begin_array(Layout::lines);
  for (const Composite& composite : checkpoint.composites) {
    json.begin_object();
    json.field("name", composite.name);
    json.field("layout", composite.layout);
    json.array_field("shape", composite.shape);
    json.array_field("parts", composite.parts);
    if (composite.layout == "quantized" && !composite.axis) {
      json.field("scale", composite.scale);
      json.field("zero_point", composite.zero_point);
    }
    if (composite.axis) json.field("axis", std::uint64_t{*composite.axis});
    json.end();
  }
  json.end();
}

void write_quantization(JsonWriter& json, const Checkpoint& checkpoint) {
  const Quantization& quantization = *checkpoint.quantization;
  json.key("quantization");
  json.begin_object();
  json.field("scheme", quantization.scheme);
  json.field("evidence", quantization.evidence);
  if (quantization.bits) json.field("bits", *quantization.bits);
  if (quantization.group_size) json.field("group_size", *quantization.group_size);
  json.field("modules", quantization.modules);
  json.field("parts", std::uint64_t{quantization.parts.size()});
  if (const auto left = unquantized_modules(quantization); !left.empty()) {
    json.key("unquantized_modules");
    json.begin_array();
    for (const std::string& module : left) json.value(module);
    json.end();
  }
  if (const auto size = dequantized_size(checkpoint)) {
    json.field("bytes_after", size->bytes);
    json.field("dtype_after", name(size->dtype));
  }
  json.end();
}

// Arrays are shortened: nobody asks info for a vocabulary.
void write_field(JsonWriter& json, const MetadataEntry& field) {
  json.key(field.key);
  if (field.is_array()) return json.value(array_text(Terminal{.interactive = true}, field));
  std::visit([&](const auto& held) { json.value(held); }, field.value().get());
}

void write_part(JsonWriter& json, const TrainingPart& part) {
  json.begin_object();
  json.field("root", part.root);
  json.field("tensors", part.tensors);
  json.field("bytes", part.bytes);
  json.end();
}

void write_training(JsonWriter& json, const TrainingParts& parts) {
  json.key("training");
  json.begin_object(Layout::lines);
  json.key("model");
  write_part(json, parts.model);
  json.field("prefix", parts.prefix);
  const std::pair<std::string_view, const std::vector<TrainingPart>*> lists[] = {
      {"optimizers", &parts.optimizers}, {"averages", &parts.averages}, {"others", &parts.others}};
  for (const auto& [key, list] : lists) {
    json.key(key);
    json.begin_array();
    for (const TrainingPart& part : *list) write_part(json, part);
    json.end();
  }
  json.array_field("tied", parts.tied);
  json.end();
}

template <class Value>
void field_if(JsonWriter& json, const char* key, const std::optional<Value>& value) {
  json.key(std::string_view(key));
  value ? json.value(*value) : json.value(nullptr);
}

void write_adapter(JsonWriter& json, const ModelInfo::Adapter& adapter) {
  json.key("adapter");
  json.begin_object();
  json.field("type", adapter.type);
  json.field("base", adapter.base);
  field_if(json, "rank", adapter.rank);
  field_if(json, "alpha", adapter.alpha);
  json.end();
}

void write_model(JsonWriter& json, const ModelInfo& model) {
  json.key("model");
  json.begin_object();
  json.field("class", model.class_name);
  json.field("type", model.type);
  json.field("dtype", model.dtype);
  field_if(json, "layers", model.layers);
  field_if(json, "hidden_size", model.hidden_size);
  field_if(json, "heads", model.heads);
  field_if(json, "kv_heads", model.kv_heads);
  field_if(json, "head_size", model.head_size);
  field_if(json, "vocabulary", model.vocabulary);
  field_if(json, "context", model.context);
  field_if(json, "experts", model.experts);
  field_if(json, "experts_used", model.experts_used);
  json.field("tokenizer", model.tokenizer);
  json.field("chat_template", model.has_chat_template);
  json.key("generation");
  json.begin_object();
  for (const auto& [key, value] : model.generation) json.field(key, value);
  json.end();
  json.key("parts");
  json.begin_object();
  for (const auto& [name, class_name] : model.parts) json.field(name, class_name);
  json.end();
  if (model.adapter) write_adapter(json, *model.adapter);
  json.end();
}

void write_estimates(JsonWriter& json, const Estimates& estimates) {
  json.key("estimates");
  json.begin_object();
  field_if(json, "bits_per_weight", estimates.bits_per_weight);
  json.field("weights_bytes", estimates.weights_bytes);
  json.field("context", estimates.context);
  field_if(json, "kv_cache_bytes", estimates.kv_cache_bytes);
  json.end();
}

}  // namespace

std::string array_text(const Terminal& screen, const MetadataEntry& field) {
  return fmt::format("{} of {}", screen.plural(field.count, "item"), name(field.element_type));
}

void write_info(JsonWriter& json, const Checkpoint& checkpoint, const InfoFacts& facts) {
  const auto& [summary, model, estimates, training] = facts;
  json.field("target", checkpoint.target);
  json.field("format", name(checkpoint.format));
  write_files(json, checkpoint);
  json.field("shards", checkpoint.shards);
  json.field("tensors", summary.tensors);
  json.field("parameters", summary.parameters);
  json.field("bytes", summary.bytes);
  write_dtypes(json, summary);
  json.key("metadata");
  json.begin_object(Layout::lines);
  for (const auto& [key, value] : checkpoint.metadata) json.field(key, value);
  for (const MetadataEntry& field : checkpoint.typed_metadata) write_field(json, field);
  json.end();
  write_roots(json, checkpoint, summary);
  json.key("tied");
  json.begin_array(Layout::lines);
  for (const auto& names : summary.tied) {
    json.begin_array();
    for (const auto& name : names) json.value(name);
    json.end();
  }
  json.end();
  json.field("wasted_bytes", summary.wasted_bytes);
  write_patterns(json, summary);
  if (!checkpoint.values.empty()) {
    json.key("values");
    json.begin_array(Layout::lines);
    for (const PlainValue& value : checkpoint.values) write_value(json, value);
    json.end();
  }
  if (training.is_training()) write_training(json, training);
  if (!model.empty()) write_model(json, model);
  if (!model.empty() && !model.adapter) write_estimates(json, estimates);
  if (checkpoint.quantization) write_quantization(json, checkpoint);
  if (!checkpoint.dequantized.empty()) json.field("dequantized", checkpoint.dequantized);
  if (!checkpoint.composites.empty()) write_composites(json, checkpoint);
  if (!checkpoint.dangerous.empty()) {
    json.key("dangerous");
    json.begin_array(Layout::lines);
    for (const Global& global : checkpoint.dangerous) json.value(global.module + "." + global.name);
    json.end();
  }
  json.key("notes");
  json.begin_array(Layout::lines);
  for (const auto* notes : {&checkpoint.notes, &model.notes}) {
    for (const Note& note : *notes) {
      json.begin_object();
      json.field("where", note.where);
      json.field("text", text_of(note));
      json.end();
    }
  }
  json.end();
}

}  // namespace ballast::cli
