// The tensors of a LoRA by their modules: taken apart, and put together with the configuration that says the same.
#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "peft/computed.hpp"
#include "peft/files/dialects.hpp"
#include "peft/hints.hpp"
#include "peft/names.hpp"
#include "peft/scaling.hpp"

namespace ballast::peft {
namespace {

enum class Part : std::uint8_t { a, b, bias, alpha, magnitude };

// How names end with PEFT, kohya, ComfyUI and the releases of diffusers.
struct Spelling {
  std::string_view ending;
  Part part;
};
constexpr Spelling kSpellings[] = {
    {".lora_A.weight", Part::a},
    {".lora_B.weight", Part::b},
    {".lora_A.default.weight", Part::a},
    {".lora_B.default.weight", Part::b},
    {".lora_B.bias", Part::bias},
    {".lora_down.weight", Part::a},
    {".lora_up.weight", Part::b},
    {".lora.down.weight", Part::a},
    {".lora.up.weight", Part::b},
    {"_lora.down.weight", Part::a},
    {"_lora.up.weight", Part::b},
    {".lora_linear_layer.down.weight", Part::a},
    {".lora_linear_layer.up.weight", Part::b},
    {".lora_magnitude_vector", Part::magnitude},
    {".lora_magnitude_vector.weight", Part::magnitude},
    {".dora_scale", Part::magnitude},
    {".alpha", Part::alpha},
};

// LyCORIS has a column, and PEFT a vector, or [1, out, 1, 1] for a convolution.
Tensor as_magnitude(const Tensor& tensor) {
  if (tensor.rank() < 2) return tensor;
  const std::uint64_t out = tensor.shape()[0];
  if (tensor.numel() != out) return tensor;  // as PEFT has it, or along the inputs, for which PEFT has no form
  if (tensor.rank() == 2) return tensor.reshape({out});
  std::vector<std::uint64_t> dims(tensor.rank(), 1);
  dims[1] = out;
  return tensor.reshape(Shape(dims));
}

Scale scale_of(const std::string& name, const LoraModule& module) {
  if (!module.a || !module.b || module.a->rank() < 2 || module.b->rank() < 2) {
    throw Error(Errc::mismatch, "module " + quote(name) + " has only one half of its LoRA, or one that is not a matrix")
        .hint(kWasItSavedWhole);
  }
  const std::uint64_t rank = module.a->shape()[0];
  if (rank == 0 || module.b->shape()[1] != rank) {
    throw Error(Errc::mismatch, "module " + quote(name) + " has an A of rank " + std::to_string(rank) +
                                    " and a B of rank " + std::to_string(module.b->shape()[1]))
        .hint("are all tensors of the same adapter?");
  }
  const auto ranks = static_cast<double>(rank);
  const double alpha = module.alpha ? *module.alpha : module.scaling ? *module.scaling * ranks : ranks;
  if (!std::isfinite(alpha)) {
    throw Error(Errc::malformed, "the alpha of module " + quote(name) + " is " + to_string(Json(alpha)))
        .hint("correct it, or leave the module out");
  }
  return {ranks, alpha};
}

}  // namespace

bool add_tensor(LoraModules& modules, std::string_view name, const Tensor& tensor) {
  const auto spelling = std::ranges::find_if(kSpellings, [&](const Spelling& s) { return name.ends_with(s.ending); });
  if (spelling == std::end(kSpellings)) return false;
  LoraModule& module = modules[std::string(name.substr(0, name.size() - spelling->ending.size()))];
  switch (spelling->part) {
    case Part::a: module.a = tensor; break;
    case Part::b: module.b = tensor; break;
    case Part::bias: module.bias = tensor; break;
    case Part::alpha: module.alpha = scalar_of(tensor); break;
    case Part::magnitude: module.magnitude = as_magnitude(tensor); break;
  }
  return true;
}

void put_modules(Adapter& adapter, const LoraModules& modules) {
  if (modules.empty()) {
    throw Error(Errc::malformed, "there is no LoRA in this file")
        .in(adapter.source)
        .hint(mention(Remedy::ls) + " shows what is");
  }
  StateDict tensors;
  std::map<std::string, Scale> scales;
  Json::List targets;
  bool has_magnitudes = false, has_biases = false;
  for (const auto& [name, module] : modules) {
    scales.emplace(name, scale_of(name, module));
    const std::string at = std::string(kPrefix) + name + (module.is_embedding ? ".lora_embedding_" : ".lora_");
    const std::string ending = module.is_embedding ? "" : ".weight";
    tensors.insert(fmt::format("{}A{}", at, ending), *module.a);
    tensors.insert(fmt::format("{}B{}", at, ending), *module.b);
    if (module.bias) tensors.insert(at + "B.bias", *module.bias);
    if (module.magnitude) tensors.insert(std::string(kPrefix) + name + ".lora_magnitude_vector", *module.magnitude);
    has_magnitudes = has_magnitudes || module.magnitude;
    has_biases = has_biases || module.bias;
    targets.emplace_back(name);
  }
  adapter.tensors = std::move(tensors);
  AdapterConfig& config = adapter.config;
  config.fields.set("peft_type", "LORA");
  write_scales(config, scales);
  config.fields.set("target_modules", targets);
  config.fields.set("use_dora", has_magnitudes);
  config.fields.set("lora_bias", has_biases);
  config.fields.set("use_rslora", false);
  config.fields.set("fan_in_fan_out", false);
  config.fields.set("bias", "none");
  config.fields.set("inference_mode", true);
  if (config.find("base_model_name_or_path") == nullptr) config.fields.set("base_model_name_or_path", nullptr);
  if (config.find("task_type") == nullptr) config.fields.set("task_type", nullptr);
}

LoraModules take_modules(const Adapter& adapter, AdapterDialect dialect) {
  const auto refuse = [&](const std::string& what) {
    return Error(Errc::unsupported, what + ", which " + std::string(name(dialect)) + " has no place for")
        .in(adapter.source)
        .hint("merge the adapter into its base, or convert it with " + mention(Remedy::dialect, "peft"));
  };
  const PeftType& type = peft_type(adapter.config);
  if (type.name != "LORA") throw refuse("this is an adapter of the type " + std::string(type.name));
  for (const LoraVariant* variant : lora_variants(adapter.config)) {
    if (!variant->why_not.empty()) throw refuse("this LoRA is of the variant " + std::string(variant->name));
  }
  // The shape of a weight tells which way round it lies, unless it is square. Nothing tells which parameter is meant.
  if (adapter.config.is_set("fan_in_fan_out"))
    throw refuse("\"fan_in_fan_out\" is set, for weights that are kept [in, out]");
  if (!adapter.config.words("target_parameters").empty())
    throw refuse("\"target_parameters\" names parameters that are not weights of modules");
  LoraModules modules;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(type, name);
    if (!parsed) throw refuse("tensor " + quote(name) + " is not a LoRA");
    if (has_word(type.training, parsed->parameter)) continue;
    const bool is_embedding = parsed->parameter.starts_with("lora_embedding_");
    if (is_embedding && dialect == AdapterDialect::gguf) {
      LoraModule& module = modules[std::string(without_prefix(parsed->module))];
      module.is_embedding = true;
      (lora_half(*parsed) == 'A' ? module.a : module.b) = tensor;
    } else if (is_embedding || !add_tensor(modules, without_prefix(name), tensor)) {
      throw refuse("tensor " + quote(name) + " is not one of a pair of matrices of a linear layer");
    }
  }
  for (auto& [name, module] : modules) {
    scale_of(name, module);  // throws if it is not a pair, of one rank
    module.scaling = lora_scaling(adapter.config, name);
  }
  return modules;
}

}  // namespace ballast::peft
