#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include "core/text.hpp"
#include "ops/merge/module.hpp"

namespace ballast::merging {
namespace {

constexpr std::string_view kModulePrefix = "base_model.model.", kModelPrefix = "base_model.";
constexpr std::string_view kWrapped = ".base_layer", kTokens = "trainable_tokens_delta";
constexpr std::string_view kTokenAdapter = "token_adapter.";

std::vector<std::string_view> split(std::string_view words) {
  std::vector<std::string_view> parts;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    parts.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return parts;
}

// "a.b.lora_A.weight" and "lora_A.weight" give "a.b"; nothing where the name does not end so.
std::optional<std::string_view> without_ending(std::string_view name, std::string_view ending) {
  if (name.size() <= ending.size() || !name.ends_with(ending) || name[name.size() - ending.size() - 1] != '.')
    return std::nullopt;
  return name.substr(0, name.size() - ending.size() - 1);
}

std::string without_wrappers(std::string_view name) {
  std::string result(name);
  for (std::size_t at = 0; (at = result.find(kWrapped, at)) != std::string::npos;) {
    const std::size_t end = at + kWrapped.size();
    if (end == result.size() || result[end] == '.') {
      result.erase(at, kWrapped.size());
    } else {
      at = end;
    }
  }
  return result;
}

class Taker {
 public:
  Taker(const Adapter& adapter, std::string_view parameters, std::string_view shared)
      : adapter_(adapter), parameters_(split(parameters)), shared_(split(shared)) {}

  Parts take() {
    for (const auto& [key, tensor] : adapter_.tensors) place(key, tensor);
    return std::move(parts_);
  }

 private:
  void place(std::string_view key, const Tensor& tensor) {
    std::string_view name = key;
    const bool is_in_model = name.starts_with(kModulePrefix);
    name.remove_prefix(is_in_model ? kModulePrefix.size() : name.starts_with(kModelPrefix) ? kModelPrefix.size() : 0);
    if (!is_in_model && is_shared(name)) return insert(parts_.shared, name, key, tensor);
    for (const std::string_view parameter : parameters_) {
      const auto module = without_ending(name, parameter);
      if (module) return insert(module_called(*module).parts, parameter, key, tensor);
    }
    if (auto module = without_ending(name, kTokens)) {
      if (module->ends_with(".token_adapter")) module->remove_suffix(kTokenAdapter.size());
      return insert(parts_.tokens, without_wrappers(*module), key, tensor);
    }
    insert(parts_.replaced, without_wrappers(name), key, tensor);
  }

  // "vera_A", and "tinylora_v.0" where "tinylora_v" is shared.
  bool is_shared(std::string_view name) const {
    return std::ranges::any_of(shared_, [&](std::string_view shared) {
      return name == shared || (name.starts_with(shared) && name[shared.size()] == '.');
    });
  }

  Module& module_called(std::string_view wrapped) {
    const auto [place, is_new] = numbers_.try_emplace(std::string(wrapped), parts_.modules.size());
    if (!is_new) return parts_.modules[place->second];
    Module module;
    std::string_view outer = wrapped;
    while (outer.ends_with(kWrapped)) {
      outer.remove_suffix(kWrapped.size());
      ++module.depth;
    }
    module.name = without_wrappers(outer);
    module.is_inside_wrapper = module.name.size() != outer.size();
    return parts_.modules.emplace_back(std::move(module));
  }

  static void insert(Tensors& tensors, std::string_view name, std::string_view key, const Tensor& tensor) {
    if (tensors.try_emplace(std::string(name), tensor).second) return;
    throw Error(Errc::malformed,
                fmt::format("the adapter has {} twice, the second time as {}", quote(name), quote(key)));
  }

  const Adapter& adapter_;
  std::vector<std::string_view> parameters_, shared_;
  std::map<std::string, std::size_t> numbers_;  // of modules, by their names with wrappers
  Parts parts_;
};

}  // namespace

Parts take_apart(const Adapter& adapter, std::string_view parameters, std::string_view shared) {
  return Taker(adapter, parameters, shared).take();
}

}  // namespace ballast::merging
