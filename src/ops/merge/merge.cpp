#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/merge.hpp>
#include <ballast/suggest.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.hpp"
#include "ops/adapter/initial.hpp"
#include "ops/adapter/left_out.hpp"
#include "ops/merge/replicate.hpp"
#include "ops/merge/rules.hpp"
#include "ops/merge/table.hpp"

namespace ballast {
namespace merging {
namespace {

const Method& method_of(const Settings& settings) {
  const std::string type = settings.text("peft_type", "");
  const Method* method = find_method(type);
  if (method == nullptr) {
    std::vector<std::string_view> names;
    for (const MergeRule& rule : merge_rules()) names.push_back(rule.peft_type);
    Error error(Errc::unsupported, fmt::format("the adapter is of the type {}, which is not known", quote(type)));
    if (const auto near = nearest(type, names)) error.hint(fmt::format("did you mean {}?", *near));
    throw error;
  }
  if (method->rule.why_not.empty()) return *method;
  throw Error(Errc::unsupported,
              fmt::format("an adapter of the type {} cannot be merged: {}", type, method->rule.why_not));
}

// Where the file has no tensors by module, the modules that the configuration targets.
void find_modules(const Base& base, const Settings& settings, Parts& parts) {
  constexpr std::string_view kWeight = ".weight";
  for (const auto& [name, tensor] : base.checkpoint()) {
    if (tensor.rank() != 2 || !name.ends_with(kWeight)) continue;
    const std::string_view module = name.substr(0, name.size() - kWeight.size());
    if (settings.matches("target_modules", module)) parts.modules.push_back({std::string(module), {}});
  }
}

// The tokens of a module: token_indices of the adapter, or trainable_token_indices by the ending of the module's name.
std::vector<std::uint64_t> token_indices(const Settings& settings, const std::string& module) {
  const Json* indices = settings.find("token_indices");
  if (indices == nullptr) indices = settings.find("trainable_token_indices");
  if (indices != nullptr && indices->is_object()) {
    const Json* own = nullptr;
    for (const auto& [name, list] : indices->members()) {
      if (module == name || module.ends_with("." + name)) own = &list;
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

// These turn the inputs or the outputs of a weight, and PEFT knows which is which by the class of the module: of a
// matrix that is kept [in, out] the other side would be turned.
void refuse_turned_sides(const Settings& settings, const MergeRule& rule) {
  constexpr std::string_view kOneSided[] = {"OFT", "BOFT", "HRA", "MISS", "C3A", "ROAD"};
  if (!settings.flag("fan_in_fan_out") || std::ranges::find(kOneSided, rule.peft_type) == std::end(kOneSided)) return;
  throw Error(Errc::unsupported,
              fmt::format("{} on weights that are kept [in, out] cannot be merged here", rule.peft_type))
      .hint("fan_in_fan_out in adapter_config.json says that they are");
}

class Merger {
 public:
  Merger(Checkpoint& checkpoint, const MergeOptions& options, bool apart)
      : base_(checkpoint, apart), options_(options) {}

  void merge(const Adapter& adapter, double weight) {
    const Settings settings(adapter.config);
    const Method& method = method_of(settings);
    refuse_turned_sides(settings, method.rule);
    adapter::refuse_another_base(adapter.config);
    const bool has_own_tokens = method.merge == nullptr;
    Parts parts = take_apart(adapter, has_own_tokens ? "" : method.rule.parameters, method.shared);
    if (method.finds_modules && parts.modules.empty()) find_modules(base_, settings, parts);
    const double signed_weight = options_.unmerge ? -weight : weight;
    for (const auto& [name, tensor] : parts.replaced) replace(settings, name, tensor, weight);
    for (const Module& module : parts.modules) method.merge({module, parts, settings, options_, signed_weight, base_});
    for (const auto& [name, rows] : parts.tokens) {
      const Module module{name, {}};
      replace_tokens({module, parts, settings, options_, signed_weight, base_}, rows, token_indices(settings, name));
    }
  }

  void finish() { base_.finish(options_.peft_exact); }

 private:
  // A module that was trained as a whole, a bias, an embedding that was saved along.
  void replace(const Settings& settings, const std::string& name, const Tensor& tensor, double weight) {
    const Tensor* before = base_.find(name);
    if (before == nullptr && !settings.matches("modules_to_save", name.substr(0, name.rfind('.')))) {
      static_cast<void>(base_.at(name));
    }
    if (before != nullptr && before->shape() != tensor.shape() && !is_resized(settings, *before, tensor))
      throw Error(Errc::mismatch,
                  fmt::format("the adapter replaces {} by a tensor of shape {}, but it has the shape {}", quote(name),
                              to_string(tensor.shape()), to_string(before->shape())))
          .hint("the adapter belongs to another model, or to another size of it");
    if (options_.unmerge)
      throw Error(Errc::unsupported,
                  fmt::format("{} was replaced by the adapter: what was there before cannot come back", quote(name)))
          .hint("go back to the base that it was merged into");
    if (weight != 1)
      throw Error(Errc::unsupported,
                  fmt::format("{} is replaced by the adapter, which cannot be weighed by {}", quote(name), weight));
    const bool keeps_dtype = before == nullptr || options_.peft_exact;
    base_.replace(name, keeps_dtype ? tensor : tensor.to(before->dtype()));
  }

  // Embeddings of a vocabulary that grew before the adapter was trained.
  static bool is_resized(const Settings&, const Tensor& before, const Tensor& after) {
    return before.rank() == 2 && after.rank() == 2 && before.shape()[1] == after.shape()[1];
  }

  Base base_;
  const MergeOptions& options_;
};

void check(const std::vector<Adapter>& adapters, const MergeOptions& options) {
  if (!options.weights.empty() && options.weights.size() != adapters.size())
    throw Error(Errc::invalid_argument,
                fmt::format("there are {} weights for {} adapters", options.weights.size(), adapters.size()));
  for (const double weight : options.weights) {
    if (!std::isfinite(weight))
      throw Error(Errc::invalid_argument, fmt::format("the weight of an adapter is {}", weight));
  }
}

}  // namespace
}  // namespace merging

Checkpoint merge(Checkpoint base, const std::vector<Adapter>& adapters, const MergeOptions& options) {
  merging::check(adapters, options);
  bool has_copies = false;
  for (const Adapter& adapter : adapters)
    has_copies = merging::replicate_layers(base, merging::Settings(adapter.config)) || has_copies;
  merging::Merger merger(base, options, has_copies && !options.peft_exact);
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    try {
      merger.merge(adapters[i], options.weights.empty() ? 1 : options.weights[i]);
    } catch (Error& error) {
      throw std::move(error.in(adapters[i].source));
    }
  }
  merger.finish();
  for (const Adapter& adapter : adapters) {
    for (Note& note : adapter::left_out_metadata(adapter, base)) base.notes.push_back(std::move(note));
  }
  return base;
}

}  // namespace ballast
