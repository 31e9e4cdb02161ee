#include "checkpoint/quantization/config.hpp"

#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include <string_view>

#include "io/section.hpp"

namespace ballast {
namespace {

// Where programs write it: in a member of a file, or (with no member) in the file itself, which then names no method.
struct ConfigPlace {
  std::string_view file, member, scheme;
};
constexpr std::string_view kModelConfig = "config.json";
constexpr ConfigPlace kConfigPlaces[] = {
    {kModelConfig, "quantization_config", ""},
    {kModelConfig, "compression_config", "compressed-tensors"},
    {kModelConfig, "quantization", "mlx"},
    {"quantize_config.json", "", "gptq"},  // AutoGPTQ
    {"quant_config.json", "", "awq"},      // AutoAWQ
    {"hf_quant_config.json", "quantization", "modelopt"},
};

std::optional<Json> read_json(const std::string& path, const OpenOptions& options) try {
  if (!options.files->exists(path)) return std::nullopt;
  return Json::parse(io::read_text(*options.files->open(path), options.limits)->view());
} catch (const Error&) {
  return std::nullopt;  // the user did not ask for this file, so its errors do not matter
}

// A model of several parts says it of a part ("text_config"), and of a part of that.
const Json* object_at(const Json& root, std::string_view member, int deepest = 3) {
  const Json* found = member.empty() ? &root : root.find(member);
  if (found != nullptr) return found->is_object() ? found : nullptr;
  if (deepest == 0 || !root.is_object()) return nullptr;
  for (const auto& [key, part] : root.members()) {
    if (!part.is_object() || !key.ends_with("_config")) continue;
    if (const Json* inside = object_at(part, member, deepest - 1)) return inside;
  }
  return nullptr;
}

template <class Number>
std::optional<Number> number_at(const Json& config, std::string_view key) {
  const Json* value = config.find(key);
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  try {
    return static_cast<Number>(value->integer());
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Newer programs write "dtype", and models of several parts write it into the part that speaks.
DType model_dtype(const Json& model) {
  constexpr DType kDTypes[] = {DType::f16, DType::bf16, DType::f32};
  const Json* text = model.find("text_config");
  for (const Json* config : {&model, text}) {
    for (const std::string_view key : {"dtype", "torch_dtype"}) {
      const Json* found = config != nullptr ? config->find(key) : nullptr;
      if (found == nullptr || !found->is_text()) continue;
      std::string_view word = found->text();
      if (word.starts_with("torch.")) word.remove_prefix(6);
      for (const DType dtype : kDTypes)
        if (info(dtype).torch_name == word) return dtype;
    }
  }
  return DType::bf16;
}

// Older files of bitsandbytes have no method.
std::string scheme_in(const Json& config, std::string_view otherwise) {
  if (const Json* method = config.find("quant_method"); method != nullptr && method->is_text()) return method->text();
  if (config.find("load_in_4bit") != nullptr || config.find("load_in_8bit") != nullptr) return "bitsandbytes";
  return std::string(otherwise);
}

}  // namespace

QuantizationConfig find_quantization_config(const std::string& target, const OpenOptions& options) {
  const bool is_folder = options.files->list(target).has_value();
  QuantizationConfig found;
  std::string_view last;
  std::optional<Json> root;
  for (const ConfigPlace& place : kConfigPlaces) {
    const std::string file(place.file);
    if (place.file != last)
      root = read_json(is_folder ? options.files->inside(target, file) : options.files->beside(target, file), options);
    last = place.file;
    if (root && found.model.is_null() && place.file == kModelConfig) {
      found.model = *root;
      found.dtype = model_dtype(*root);
    }
    const Json* config = root ? object_at(*root, place.member) : nullptr;
    if (config == nullptr) continue;
    if (found.file.empty()) found.file = file;
    if (found.scheme.empty()) found.scheme = scheme_in(*config, place.scheme);
    if (found.config.is_null()) found.config = *config;
    if (!found.bits) found.bits = number_at<std::uint64_t>(*config, "bits");
    if (!found.group_size) found.group_size = number_at<std::int64_t>(*config, "group_size");
  }
  return found;
}

}  // namespace ballast
