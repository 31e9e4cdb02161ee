#include "checkpoint/quantization/schemes.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/quantization/config.hpp"
#include "checkpoint/quantization/find_packed.hpp"
#include "checkpoint/quantization/torchao_wrappers.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "core/shard_name.hpp"
#include "io/section.hpp"
#include "tensor/doors.hpp"

namespace ballast {
namespace {

bool has_packed_dtypes(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint,
                             [](const auto& entry) { return may_tell_scheme(entry.name, entry.tensor.dtype()); });
}

// Which tensors of a checkpoint are parts.
class Parts {
 public:
  explicit Parts(const Checkpoint& checkpoint) : tensors_(checkpoint.tensors), are_(checkpoint.size()) {}

  bool empty() const noexcept { return is_empty_; }
  bool has(std::size_t number) const { return are_[number]; }
  void add(std::size_t number) {
    are_[number] = true;
    is_empty_ = false;
  }
  StateDict tensors() const { return Doors::selected(tensors_, are_); }

 private:
  const StateDict& tensors_;
  std::vector<bool> are_;
  bool is_empty_ = true;
};

// The parts of the weights that names and dtypes tell.
Quantization quantization_of(const Checkpoint& checkpoint, const PackedWeights& weights, Parts& parts) {
  Quantization quantization;
  if (weights.all().empty()) return quantization;
  quantization.scheme = weights.all().front().scheme;
  quantization.evidence = "names and dtypes";
  quantization.modules = weights.all().size();
  for (std::size_t i = 0; i < checkpoint.size(); ++i)
    if (weights.has_part(i) || weights.has_of_activations(i)) parts.add(i);
  return quantization;
}

// Adds tensors of torchao's classes. If such a class keeps its data in a way that is not known, its parts are not found
// by their names.
void add_wrappers(const Checkpoint& checkpoint, const PackedWeights& weights, Quantization& quantization,
                  Parts& parts) {
  for (const TorchaoWrapper& wrapper : torchao_wrappers(checkpoint)) {
    bool is_new = !weights.has_base(wrapper.weight), is_there = false;
    for (const std::string& part : wrapper.parts) {
      const auto number = Doors::number_of(checkpoint.tensors, part);
      if (!number) continue;
      is_there = true;
      is_new = is_new && !parts.has(*number);
      parts.add(*number);
    }
    if (!is_there) continue;
    quantization.modules += is_new ? 1 : 0;
    quantization.scheme = "torchao";
    quantization.evidence = "the class " + wrapper.type;
  }
}

// Codes without their scales are no weights either, and neither are scales without their codes: somebody selected them,
// or a shard is missing.
void add_orphans(const Checkpoint& checkpoint, const PackedWeights& weights, Quantization& quantization, Parts& parts) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    if (parts.has(i)) continue;
    std::string name = weights.orphan_of(i);
    if (name.empty()) continue;
    parts.add(i);
    names.insert(std::move(name));
  }
  for (const std::string& name : names)
    if (const auto number = Doors::number_of(checkpoint.tensors, name)) parts.add(*number);  // also one of floats
  quantization.modules += names.size();
}

// For a shard that is opened alone, and has codes that could be taken for weights: the index beside it, if it names
// other parts of them, which are in other shards. An index that cannot be read says nothing.
std::optional<std::string> index_of_orphans(const Checkpoint& checkpoint, const PackedWeights& weights,
                                            const std::string& target, const OpenOptions& options) try {
  std::vector<std::string_view> orphans;
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    if (is_floating(tensor.dtype()) && is_packed_dtype(tensor.dtype()) && !weights.orphan_of(i).empty())
      orphans.push_back(name);
  }
  const auto shard = parse_usual_shard_name(target.substr(target.find_last_of('/') + 1));
  if (orphans.empty() || !shard) return std::nullopt;
  const std::string file = shard->whole() + std::string(kIndexEnding), path = options.files->beside(target, file);
  if (!options.files->exists(path)) return std::nullopt;
  const ShardIndex index = parse_shard_index(io::read_text(*options.files->open(path), options.limits), options.limits);
  NameViewMap<bool> codes, modules;
  for (const std::string_view name : orphans) {
    codes.emplace(name, true);
    modules.emplace(module_of(name), true);
  }
  const auto is_other_part = [&](const ShardIndex::Place& place) {
    const std::string_view module = module_of(place.tensor), last = place.tensor.substr(module.size());
    if (checkpoint.contains(place.tensor)) return false;
    return codes.contains(module) || (modules.contains(module) && last.find("scale") != std::string_view::npos);
  };
  if (std::ranges::any_of(index.weight_map, is_other_part)) return file;
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

// For a scheme that is known only by its configuration: takes every tensor of such a dtype, unless it lies beside a
// weight in floats.
void add_modules(const Checkpoint& checkpoint, Quantization& quantization, Parts& parts) {
  NameMap<bool> modules;
  for (const auto& [name, tensor] : checkpoint) {
    const std::string module(module_of(name));
    const Tensor* weight = checkpoint.find(module + ".weight");
    const bool has_floats = weight != nullptr && is_floating(weight->dtype()) && !is_packed_dtype(weight->dtype());
    if (is_packed_dtype(tensor.dtype()) && tensor.rank() != 0 && !module.empty() && !has_floats)
      modules.emplace(module, true);
  }
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const std::string_view name = checkpoint.tensors[i].name;
    if (modules.contains(module_of(name)) && !name.ends_with(".bias")) parts.add(i);
  }
  quantization.modules = modules.size();
}

}  // namespace

Checkpoint recognize_quantization(Checkpoint checkpoint, const std::string& target, const OpenOptions& options) {
  if (checkpoint.format == Format::gguf) return checkpoint;  // ggml's own types are not parts
  if (!has_packed_dtypes(checkpoint) && checkpoint.composites.empty()) return checkpoint;
  const PackedWeights weights(checkpoint);
  Parts parts(checkpoint);
  Quantization quantization = quantization_of(checkpoint, weights, parts);
  add_wrappers(checkpoint, weights, quantization, parts);
  const QuantizationConfig config = target.empty() ? QuantizationConfig() : find_quantization_config(target, options);
  std::optional<std::string> index;
  if (parts.empty() && config.scheme.empty() && !target.empty())
    index = index_of_orphans(checkpoint, weights, target, options);
  if (index) {
    quantization.scheme = "fp8";
    quantization.evidence = *index;
  }
  checkpoint.notes.insert(checkpoint.notes.end(), config.unread.begin(), config.unread.end());
  const bool is_undecoded = !undecoded_scheme(config.scheme, config.config).empty();
  if (parts.empty() && is_undecoded) add_modules(checkpoint, quantization, parts);
  if (index || !parts.empty() || !config.scheme.empty()) add_orphans(checkpoint, weights, quantization, parts);
  if (parts.empty() && !config.scheme.empty()) add_modules(checkpoint, quantization, parts);
  if (parts.empty()) return checkpoint;
  quantization.parts = parts.tensors();

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
