// The tensors of a LoRA by their modules: taken apart, and put together with the configuration that says the same.
#include <ballast/error.hpp>

#include <fmt/format.h>

#include <re2/re2.h>
#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "ops/adapter/computed.hpp"
#include "ops/adapter/dialects.hpp"
#include "ops/adapter/names.hpp"
#include "ops/adapter/prefix.hpp"

namespace ballast::adapter {
namespace {

enum class Part : std::uint8_t { a, b, bias, alpha, magnitude };

// How names end, of PEFT, kohya, ComfyUI and the releases of diffusers.
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

// LyCORIS has a column, PEFT a vector; of a convolution PEFT has [1, out, 1, 1].
Tensor as_magnitude(const Tensor& tensor) {
  if (tensor.rank() < 2) return tensor;
  const std::uint64_t out = tensor.shape()[0];
  if (tensor.numel() != out) return tensor;  // as PEFT has it, or along the input, which nobody can say in PEFT
  if (tensor.rank() == 2) return tensor.reshape({out});
  std::vector<std::uint64_t> dims(tensor.rank(), 1);
  dims[1] = out;
  return tensor.reshape(Shape(dims));
}

struct Scale {
  std::uint64_t rank;
  double alpha;
  auto operator<=>(const Scale&) const = default;
};

Scale scale_of(const std::string& name, const LoraModule& module) {
  if (!module.a || !module.b || module.a->rank() < 2 || module.b->rank() < 2) {
    throw Error(Errc::mismatch, "module " + quote(name) + " has only one half of its LoRA, or one that is no matrix")
        .hint("was the file saved whole?");
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
  return {rank, alpha};
}

Json number(double value) {
  const bool is_whole = std::abs(value) < 1e15 && value == std::floor(value);
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

template <class T>
T most_common(const std::map<T, std::uint64_t>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
}

// r and lora_alpha as most modules have them, and a pattern for each other.
void say_scales(AdapterConfig& config, const std::map<std::string, Scale>& scales) {
  std::map<std::uint64_t, std::uint64_t> ranks;
  std::map<double, std::uint64_t> alphas;
  for (const auto& [name, scale] : scales) {
    ++ranks[scale.rank];
    ++alphas[scale.alpha];
  }
  const std::uint64_t rank = most_common(ranks);
  const double alpha = most_common(alphas);
  Json::Members rank_pattern, alpha_pattern;
  for (const auto& [name, scale] : scales) {
    const std::string pattern = "^" + re2::RE2::QuoteMeta(name);
    if (scale.rank != rank) rank_pattern.emplace_back(pattern, scale.rank);
    if (scale.alpha != alpha) alpha_pattern.emplace_back(pattern, number(scale.alpha));
  }
  config.fields.set("r", rank);
  config.fields.set("lora_alpha", number(alpha));
  config.fields.set("rank_pattern", rank_pattern);
  config.fields.set("alpha_pattern", alpha_pattern);
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
    throw Error(Errc::malformed, "there is no LoRA in this file").in(adapter.source).hint("ballast ls shows what is");
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
  say_scales(config, scales);
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

LoraModules take_modules(const Adapter& adapter, AdapterDialect dialect, bool with_embeddings) {
  const auto refuse = [&](const std::string& what) {
    return Error(Errc::unsupported, what + ", which " + std::string(name(dialect)) + " has no place for")
        .in(adapter.source)
        .hint("merge the adapter into its base, or convert it --to peft");
  };
  const PeftType& type = peft_type(adapter.config);
  if (type.name != "LORA") throw refuse("this is an adapter of the type " + std::string(type.name));
  // Which way round a weight lies is told by its shape, unless that is square; which parameter is meant, by nothing.
  if (adapter.config.is_set("fan_in_fan_out"))
    throw refuse("\"fan_in_fan_out\" is set, for weights that are kept [in, out]");
  if (const Json* parameters = adapter.config.find("target_parameters");
      parameters != nullptr && (!parameters->is_list() || !parameters->list().empty()))
    throw refuse("\"target_parameters\" names parameters that are no modules' weights");
  LoraModules modules;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(type, name);
    if (!parsed) throw refuse("tensor " + quote(name) + " is no LoRA");
    std::string module(parsed->module.substr(prefix_of(parsed->module).size()));
    const bool is_embedding = parsed->parameter.starts_with("lora_embedding_");
    if (is_embedding && with_embeddings) {
      modules[module].is_embedding = true;
      (parsed->parameter == "lora_embedding_A" ? modules[module].a : modules[module].b) = tensor;
    } else if (is_embedding || !add_tensor(modules, name.substr(prefix_of(name).size()), tensor)) {
      throw refuse("tensor " + quote(name) + " is no pair of matrices of a linear layer");
    }
  }
  for (auto& [name, module] : modules) {
    scale_of(name, module);  // a pair, of one rank
    module.scaling = lora_scaling(adapter.config, name);
  }
  return modules;
}

}  // namespace ballast::adapter
