// A GGUF as a model of transformers: names, values, and config.json.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ballast/gguf_model.hpp>

#include "llamacpp/back/finish.hpp"
#include "llamacpp/back/model_config.hpp"
#include "save/plan.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast {
namespace {

using llamacpp::back::BackClass;
using llamacpp::back::GgufFacts;
using llamacpp::back::MadeConfig;
using llamacpp::back::make_config_of;

// Several classes have names of their own for a tensor that GGUF has one name for. The tables of names have the usual
// one.
struct OtherName {
  std::string_view classes;  // the beginning of the class's name
  std::string_view sign;     // the end of a tensor's name in the GGUF
  bool has_sign;             // whether there must be such a tensor, or none
  std::string_view found, wanted;
};
constexpr OtherName kOtherNames[] = {
    {"FalconForCausalLM", ".attn_norm_2.weight", true, ".input_layernorm.", ".ln_mlp."},
    {"T5", ".ffn_gate.weight", false, ".wi_1.", ".wi."},
    {"UMT5", ".ffn_gate.weight", false, ".wi_1.", ".wi."},
    {"BertForSequenceClassification", "cls.output.weight", true, "classifier.out_proj.", "classifier."},
    {"ModernBertForSequenceClassification", "cls.output.weight", true, "classifier.out_proj.", "classifier."},
    {"DistilBert", "cls.weight", true, "classifier.dense.", "pre_classifier."},
    {"DistilBert", "cls.output.weight", true, "classifier.out_proj.", "classifier."},
    {"DistilBert", {}, true, "encoder.layer.", "transformer.layer."},
    {"DistilBert", {}, true, ".attention.self.query.", ".attention.q_lin."},
    {"DistilBert", {}, true, ".attention.self.key.", ".attention.k_lin."},
    {"DistilBert", {}, true, ".attention.self.value.", ".attention.v_lin."},
    {"DistilBert", {}, true, ".attention.output.dense.", ".attention.out_lin."},
    {"DistilBert", {}, true, ".attention.output.LayerNorm.", ".sa_layer_norm."},
    {"DistilBert", {}, true, ".intermediate.dense.", ".ffn.lin1."},
    {"DistilBert", {}, true, ".output.dense.", ".ffn.lin2."},
    {"DistilBert", {}, true, ".output.LayerNorm.", ".output_layer_norm."},
    {"JinaBertModel", ".ffn_gate.weight", true, ".mlp.gated_layers.", ".mlp.gated_layers_v."},
};

std::vector<const OtherName*> other_names(std::string_view class_name, const GgufFacts& facts) {
  std::vector<const OtherName*> rows;
  for (const OtherName& row : kOtherNames) {
    if (class_name.starts_with(row.classes) && facts.has_ending(row.sign) == row.has_sign) rows.push_back(&row);
  }
  return rows;
}

std::string with_other_name(std::string name, const std::vector<const OtherName*>& rows) {
  for (const OtherName* row : rows) {
    const std::size_t at = name.find(row->found);
    if (at != std::string::npos) name.replace(at, row->found.size(), row->wanted);
  }
  return name;
}

// RoBERTa has rows of positions for the padding and before it, which it never uses and the converter leaves out.
void add_unused_positions(Checkpoint& gguf, const BackClass& of) {
  const std::string name = "position_embd.weight";
  const Tensor* positions = gguf.find(name);
  if (of.finish != llamacpp::back::finish_roberta || positions == nullptr || positions->rank() != 2) return;
  if (!is_floating(positions->dtype())) return;
  const std::uint64_t first = llamacpp::back::first_position(GgufFacts(gguf)), width = positions->shape()[1];
  if (width > (1u << 20) || first > (1u << 10)) return;
  const std::vector<float> zeros(static_cast<std::size_t>(first * width));
  const Tensor unused = Tensor::from_values<float>(DType::f32, {first, width}, zeros).to(positions->dtype());
  gguf.tensors.replace(name, concatenated({unused, *positions}, 0));
}

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "float64";
    case DType::f32: return "float32";
    case DType::f16: return "float16";
    case DType::bf16: return "bfloat16";
    default: return {};
  }
}

// The type that most of the bytes have.
std::string torch_dtype(const SavePlan& plan) {
  std::map<std::string_view, std::uint64_t> bytes;
  for (const auto& file : plan.files) {
    for (const auto& item : file.items) bytes[torch_name(item.tensor.dtype())] += item.tensor.nbytes();
  }
  bytes.erase("");
  if (bytes.empty()) return {};
  return std::string(std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; })->first);
}

bool has_mxfp4(const SavePlan& plan) {
  return std::ranges::any_of(plan.files, [](const SavePlan::File& file) {
    return std::ranges::any_of(file.items, [](const auto& item) { return item.name.ends_with("_proj_blocks"); });
  });
}

}  // namespace

Json model_config_of(const Checkpoint& gguf) { return make_config_of(gguf).config; }

HuggingFaceModel to_huggingface_model(Checkpoint gguf, const NameOptions& options) {
  MadeConfig made = make_config_of(gguf);
  if (made.of == nullptr) {
    Checkpoint model = to_names(std::move(gguf), NameStyle::huggingface, options);
    model.notes.insert(model.notes.end(), made.notes.begin(), made.notes.end());
    return {std::move(model), {}};
  }
  const auto rows = other_names(made.of->class_name, GgufFacts(gguf));
  add_unused_positions(gguf, *made.of);
  const auto is_told = [&](std::string_view name) { return std::ranges::find(made.told, name) != made.told.end(); };
  gguf = keep_names(std::move(gguf), [&](std::string_view name) { return !is_told(name); });
  Checkpoint model = to_names(std::move(gguf), NameStyle::huggingface, options);
  if (!rows.empty())
    model = rename_names(std::move(model), [&](std::string_view name) {
      return std::optional(with_other_name(std::string(name), rows));
    });
  model.notes.insert(model.notes.end(), made.notes.begin(), made.notes.end());
  return {std::move(model), std::move(made.config)};
}

void add_model_config(SavePlan& plan, Json config) {
  if (config.is_null() || plan.files.empty()) return;
  if (const std::string dtype = torch_dtype(plan); !dtype.empty()) config.set("torch_dtype", dtype);
  if (has_mxfp4(plan)) config.set("quantization_config", Json::Members{{"quant_method", "mxfp4"}});
  const std::string text = to_string(config, 2) + "\n";
  const auto bytes = std::as_bytes(std::span(text));
  SavePlan::File file;
  file.path = (std::filesystem::path(plan.files.front().path).parent_path() / "config.json").string();
  file.head.assign(bytes.begin(), bytes.end());
  file.size_bytes = text.size();
  add_file(plan, std::move(file));
}

}  // namespace ballast
