#include "checkpoint/quantization/schemes.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/quantization/config.hpp"
#include "checkpoint/quantization/find_packed.hpp"

namespace ballast {
namespace {

bool has_packed_dtypes(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint, [](const auto& entry) { return is_packed_dtype(entry.tensor.dtype()); });
}

// The parts of the weights that names and dtypes tell.
Quantization quantization_of(const Checkpoint& checkpoint, const PackedWeights& weights) {
  Quantization quantization;
  if (weights.all().empty()) return quantization;
  quantization.scheme = weights.all().front().scheme;
  quantization.evidence = "names and dtypes";
  quantization.modules = weights.all().size();
  for (const auto& [name, tensor] : checkpoint)
    if (weights.has_part(name) || weights.has_of_activations(name)) quantization.parts.insert(name, tensor);
  return quantization;
}

// Adds wrappers of torchao, which a pickle rebuilds. If such a class keeps its data in a way that is not known, its
// parts are not found by their names.
void add_wrappers(const Checkpoint& checkpoint, Quantization& quantization) {
  for (const Composite& composite : checkpoint.composites) {
    if (!composite.layout.starts_with("torchao.")) continue;
    bool is_new = false;
    for (const std::string& part : composite.parts) {
      const Tensor* tensor = checkpoint.find(part);
      if (tensor != nullptr) is_new |= quantization.parts.insert(part, *tensor);
    }
    quantization.modules += is_new ? 1 : 0;
    quantization.scheme = "torchao";
    quantization.evidence = "the class " + composite.layout;
  }
}

// Codes without their scales are no weights either: somebody selected them, or a shard is missing.
void add_orphans(const Checkpoint& checkpoint, const PackedWeights& weights, Quantization& quantization) {
  for (const auto& [name, tensor] : checkpoint)
    if (!quantization.parts.contains(name) && weights.is_orphan(name, tensor) &&
        quantization.parts.insert(name, tensor))
      ++quantization.modules;
}

// For a scheme that is known only by its configuration: takes every tensor of such a dtype, unless it lies beside a
// weight in floats.
void add_modules(const Checkpoint& checkpoint, Quantization& quantization) {
  NameMap<bool> modules;
  for (const auto& [name, tensor] : checkpoint) {
    const std::string module(module_of(name));
    const Tensor* weight = checkpoint.find(module + ".weight");
    const bool has_floats = weight != nullptr && is_floating(weight->dtype()) && !is_packed_dtype(weight->dtype());
    if (is_packed_dtype(tensor.dtype()) && tensor.rank() != 0 && !module.empty() && !has_floats)
      modules.emplace(module, true);
  }
  for (const auto& [name, tensor] : checkpoint)
    if (modules.contains(module_of(name)) && !name.ends_with(".bias")) quantization.parts.insert(name, tensor);
  quantization.modules = modules.size();
}

}  // namespace

Checkpoint recognize_quantization(Checkpoint checkpoint, const std::string& target, const OpenOptions& options) {
  if (checkpoint.format == Format::gguf) return checkpoint;  // ggml's own types are not parts
  if (!has_packed_dtypes(checkpoint) && checkpoint.composites.empty()) return checkpoint;
  const PackedWeights weights(checkpoint);
  Quantization quantization = quantization_of(checkpoint, weights);
  add_wrappers(checkpoint, quantization);
  const QuantizationConfig config = target.empty() ? QuantizationConfig() : find_quantization_config(target, options);
  if (!quantization.parts.empty() || !config.scheme.empty()) add_orphans(checkpoint, weights, quantization);
  if (quantization.parts.empty() && !config.scheme.empty()) add_modules(checkpoint, quantization);
  if (quantization.parts.empty()) return checkpoint;

  if (!config.scheme.empty()) {
    quantization.scheme = config.scheme;
    quantization.evidence = config.file;
    quantization.bits = config.bits;
    quantization.group_size = config.group_size;
  }
  quantization.config = config.config;
  quantization.model = config.model;
  quantization.dtype = config.dtype;
  checkpoint.quantization = std::move(quantization);
  return checkpoint;
}

}  // namespace ballast
