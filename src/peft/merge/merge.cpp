#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/merge.hpp>
#include <ballast/transform.hpp>

#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "peft/hints.hpp"
#include "peft/initial.hpp"
#include "peft/left_out.hpp"
#include "peft/merge/rules.hpp"
#include "peft/names.hpp"
#include "peft/replicate.hpp"
#include "peft/targets.hpp"

namespace ballast {
namespace peft {
namespace {

const PeftType& mergeable_type(const AdapterConfig& config) {
  const PeftType& type = peft_type(config);
  if (const std::string_view why_not = why_not_merged(type, config); !why_not.empty())
    throw Error(Errc::unsupported, fmt::format("an adapter of the type {} cannot be merged: {}", type.name, why_not));
  // PEFT knows by the class of a module which side of its weight are the inputs. A rule that turns one side would turn
  // the other one.
  if (type.turns_one_side && config.is_set("fan_in_fan_out"))
    throw Error(Errc::unsupported, fmt::format("{} on weights that are kept [in, out] cannot be merged", type.name))
        .hint("fan_in_fan_out in adapter_config.json says that they are");
  refuse_another_base(config);
  return type;
}

// The modules that the configuration targets, for an adapter that has no tensors at modules.
std::vector<Module> target_modules(const Base& base, const AdapterConfig& config) {
  std::vector<Module> modules;
  const TargetModules targets(config);
  for (const auto& [name, tensor] : base.checkpoint()) {
    if (tensor.rank() == 2 && name.ends_with(".weight") && targets.contains(module_of(name)))
      modules.push_back({std::string(module_of(name))});
  }
  return modules;
}

// The tokens of a module: token_indices of the adapter, or trainable_token_indices, which may name modules by the ends
// of their names.
std::vector<std::uint64_t> token_indices(const AdapterConfig& config, const std::string& module) {
  const Json* indices = config.find("token_indices");
  if (indices == nullptr) indices = config.find("trainable_token_indices");
  if (indices != nullptr && indices->is_object()) {
    const Json* own = nullptr;
    for (const auto& [name, list] : indices->members()) {
      if (ends_with_name(module, name)) own = &list;
    }
    indices = own;
  }
  if (indices == nullptr)
    throw Error(
        Errc::mismatch,
        fmt::format("the adapter has trained tokens of {}, but its configuration does not say which", quote(module)));
  std::vector<std::uint64_t> result;
  for (const Json& index : indices->list()) result.push_back(index.count());
  return result;
}

class Merger {
 public:
  Merger(Checkpoint& checkpoint, const MergeOptions& options, bool apart)
      : base_(checkpoint, apart), options_(options) {}

  void merge(const Adapter& adapter, double weight) {
    const AdapterConfig& config = adapter.config;
    const PeftType& type = mergeable_type(config);
    check_adapter(adapter);
    Parts parts = take_apart(adapter, type);
    if (parts.modules.empty() && !parts.shared.empty()) parts.modules = target_modules(base_, config);
    const double factor = options_.unmerge ? -weight : weight;
    for (const auto& [name, tensor] : parts.replaced) replace(config, name, tensor, weight);
    for (const Module& module : parts.modules) type.merge({module, parts, config, options_, factor, base_});
    for (const auto& [name, rows] : parts.tokens) {
      const Module module{name};
      replace_tokens({module, parts, config, options_, factor, base_}, rows, token_indices(config, name));
    }
  }

  void finish() { base_.finish(options_.peft_exact, options_.dtype); }

 private:
  // A tensor of a module that was trained as a whole, a bias, or an embedding that was saved along.
  void replace(const AdapterConfig& config, const std::string& name, const Tensor& tensor, double weight) {
    const bool may_be_new = is_saved_whole(config.words("modules_to_save"), module_of(name));
    const Tensor* before = may_be_new ? base_.find(name) : &base_.at(name);
    if (before != nullptr && before->shape() != tensor.shape() && !is_resized(*before, tensor))
      throw Error(Errc::mismatch,
                  fmt::format("the adapter replaces {} by a tensor of shape {}, but it has the shape {}", quote(name),
                              to_string(tensor.shape()), to_string(before->shape())))
          .hint(kAnotherModel);
    if (options_.unmerge)
      throw Error(Errc::unsupported,
                  fmt::format("{} was replaced by the adapter: the tensor before it cannot come back", quote(name)))
          .hint("go back to the base that it was merged into");
    if (weight != 1)
      throw Error(Errc::unsupported,
                  fmt::format("{} is replaced by the adapter, which cannot be weighed by {}", quote(name), weight));
    const bool keeps_dtype = before == nullptr || options_.peft_exact || options_.dtype;
    base_.replace(name, keeps_dtype ? tensor : tensor.to(before->dtype()));
  }

  // Whether these are embeddings of a vocabulary that grew before the adapter was trained.
  static bool is_resized(const Tensor& before, const Tensor& after) {
    return before.rank() == 2 && after.rank() == 2 && before.shape()[1] == after.shape()[1];
  }

  Base base_;
  const MergeOptions& options_;
};

void check_weights(const std::vector<Adapter>& adapters, const MergeOptions& options) {
  if (!options.weights.empty() && options.weights.size() != adapters.size())
    throw Error(Errc::invalid_argument,
                fmt::format("there are {} weights for {} adapters", options.weights.size(), adapters.size()));
  for (const double weight : options.weights) {
    if (!std::isfinite(weight))
      throw Error(Errc::invalid_argument, fmt::format("the weight of an adapter is {}", weight));
  }
}

}  // namespace
}  // namespace peft

Checkpoint merge(Checkpoint base, const std::vector<Adapter>& adapters, const MergeOptions& options) {
  peft::check_weights(adapters, options);
  const bool is_gguf = has_gguf_names(base);
  if (is_gguf) base = to_names(std::move(base), NameStyle::huggingface, options.names);
  bool has_copies = false;
  for (const Adapter& adapter : adapters) {
    has_copies = has_copies || peft::has_replicated_layers(adapter.config);
    base.tensors = peft::replicate_layers(base.tensors, adapter.config);
  }
  peft::Merger merger(base, options, has_copies && !options.peft_exact);
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    try {
      merger.merge(adapters[i], options.weights.empty() ? 1 : options.weights[i]);
    } catch (Error& error) {
      throw std::move(error.in(adapters[i].source));
    }
  }
  merger.finish();
  for (const Adapter& adapter : adapters) {
    for (Note& note : peft::left_out_metadata(adapter, base)) base.notes.push_back(std::move(note));
  }
  if (is_gguf) base = to_names(std::move(base), NameStyle::gguf, options.names);
  return options.dtype ? cast(std::move(base), *options.dtype) : base;
}

}  // namespace ballast
