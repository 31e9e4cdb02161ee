#include "checkpoint/quantization/config.hpp"

#include <ballast/dequantize.hpp>
#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "core/text.hpp"
#include "io/section.hpp"

namespace ballast {
namespace {

// Where programs write it: in a member of a file, or (with no member) in the file itself, which then names no method.
struct ConfigPlace {
  std::string_view file, member, scheme;
};
constexpr std::string_view kUnread = "it is not known what this file says of quantization: ";
constexpr std::string_view kModelConfig = "config.json";
constexpr ConfigPlace kConfigPlaces[] = {
    {kModelConfig, "quantization_config", ""},
    {kModelConfig, "compression_config", "compressed-tensors"},
    {kModelConfig, "quantization", "mlx"},
    {"quantize_config.json", "", "gptq"},  // AutoGPTQ
    {"quant_config.json", "", "awq"},      // AutoAWQ
    {"hf_quant_config.json", "quantization", "modelopt"},
};

// The user did not ask for this file: its errors do not keep anybody from opening the checkpoint.
std::optional<Json> read_json(const std::string& path, const OpenOptions& options, std::vector<Note>& unread) try {
  if (!options.files->exists(path)) return std::nullopt;
  return io::read_configuration(*options.files->open(path), options.limits);
} catch (const Error& error) {
  unread.push_back({path, std::string(kUnread) + error.message()});
  return std::nullopt;
}

// A model of several parts says it of a part ("text_config"), and of a part of that.
// NOLINTNEXTLINE(misc-no-recursion)
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

const Json* inside_config(const Json& config, std::initializer_list<std::string_view> keys) {
  const Json* found = &config;
  for (const std::string_view key : keys)
    if (found = found->find(key); found == nullptr) return nullptr;
  return found;
}

bool says_true(const Json& config, std::string_view key) {
  const Json* found = config.find(key);
  return found != nullptr && found->is_bool() && found->boolean();
}

// The settings of compressed-tensors' groups, if all groups agree.
template <class Number>
std::optional<Number> number_of_groups(const Json& config, std::string_view key) {
  const Json* groups = config.find("config_groups");
  if (groups == nullptr || !groups->is_object()) return std::nullopt;
  std::optional<Number> all;
  for (const auto& [name, group] : groups->members()) {
    const Json* weights = group.find("weights");
    const auto own = weights != nullptr ? number_at<Number>(*weights, key) : std::nullopt;
    if (!own || (all && *all != *own)) return std::nullopt;
    all = own;
  }
  return all;
}

// What the word of a dtype ("int4", "qfloat8") or of an algorithm ("NVFP4", "Int8WeightOnlyConfig") says.
std::optional<std::uint64_t> bits_in_word(const Json* word) {
  if (word == nullptr || !word->is_text()) return std::nullopt;
  const std::string text = lower_case(word->text());
  for (const std::string_view name : {"int", "float", "fp", "nf"}) {
    const auto at = text.find(name);
    const auto digit = at == std::string::npos ? at : at + name.size();
    const bool is_alone = digit != std::string::npos && digit < text.size() && text[digit] >= '1' &&
                          text[digit] <= '8' &&
                          (digit + 1 == text.size() || text[digit + 1] < '0' || text[digit + 1] > '9');
    if (is_alone) return static_cast<std::uint64_t>(text[digit] - '0');
  }
  return std::nullopt;
}

// Where a scheme says its sizes in words of its own, or has just one.
void add_sizes(QuantizationConfig& found) {
  const Json& config = found.config;
  const std::string& scheme = found.scheme;
  const auto bits = [&](std::optional<std::uint64_t> said) { found.bits = found.bits ? found.bits : said; };
  const auto group = [&](std::optional<std::int64_t> said) {
    found.group_size = found.group_size ? found.group_size : said;
  };
  bits(number_of_groups<std::uint64_t>(config, "num_bits"));
  group(number_of_groups<std::int64_t>(config, "group_size"));
  if (scheme == "fp8" || scheme == "fbgemm_fp8") bits(8);
  if (scheme == "mxfp4") bits(4), group(32);
  if (scheme == "quanto") bits(bits_in_word(config.find("weights")));
  if (scheme == "modelopt") bits(bits_in_word(config.find("quant_algo")));
  if (scheme == "bitsandbytes" && says_true(config, "load_in_8bit")) bits(8);
  if (scheme == "bitsandbytes" && says_true(config, "load_in_4bit")) bits(4), group(64);
  if (const Json* hqq = inside_config(config, {"quant_config", "weight_quant_params"})) {
    bits(number_at<std::uint64_t>(*hqq, "nbits"));
    group(number_at<std::int64_t>(*hqq, "group_size"));
  }
  if (const Json* torchao = inside_config(config, {"quant_type", "default"})) {
    bits(bits_in_word(inside_config(*torchao, {"_data", "weight_dtype", "_data"})));
    bits(bits_in_word(torchao->find("_type")));
    if (const Json* data = torchao->find("_data")) group(number_at<std::int64_t>(*data, "group_size"));
  }
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
      root = read_json(is_folder ? options.files->inside(target, file) : options.files->beside(target, file), options,
                       found.unread);
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
  add_sizes(found);
  return found;
}

void refuse_unread_configuration(const Checkpoint& checkpoint) {
  for (const Note& note : checkpoint.notes)
    if (note.text.starts_with(kUnread)) throw Error(Errc::malformed, note.text).in(note.where);
}

std::vector<std::string> unquantized_modules(const Quantization& quantization) {
  std::vector<std::string> modules;
  const Json& config = quantization.config;
  for (const char* key : {"modules_to_not_convert", "llm_int8_skip_modules", "ignore", "ignored_layers",
                          "exclude_modules", "exclude", "skip_modules"}) {
    const Json* list = config.find(key);
    if (list == nullptr || !list->is_list()) continue;
    for (const Json& module : list->list())
      if (module.is_text()) modules.push_back(module.text());
  }
  if (const Json* dynamic = config.find("dynamic"); dynamic != nullptr && dynamic->is_object())  // GPTQModel's
    for (const auto& [name, settings] : dynamic->members())
      if (name.starts_with("-:")) modules.push_back(name.substr(2));
  if (config.is_object() && quantization.scheme == "mlx")
    for (const auto& [name, settings] : config.members())
      if (settings.is_bool() && !settings.boolean()) modules.push_back(name);
  std::ranges::sort(modules);
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  return modules;
}

}  // namespace ballast
