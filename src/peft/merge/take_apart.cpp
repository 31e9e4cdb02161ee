#include <fmt/format.h>
#include <ballast/error.hpp>

#include <map>
#include <utility>

#include "core/text.hpp"
#include "peft/merge/module.hpp"
#include "peft/names.hpp"
#include "peft/targets.hpp"

namespace ballast::peft {
namespace {

class Taker {
 public:
  Taker(const Adapter& adapter, const PeftType& type) : adapter_(adapter), type_(type) {}

  Parts take() {
    for (const auto& [key, tensor] : adapter_.tensors) place(key, tensor);
    return std::move(parts_);
  }

 private:
  void place(std::string_view key, const Tensor& tensor) {
    const std::string_view name = without_prefix(key);
    if (ends_with_name(name, "trainable_tokens_delta")) {
      const std::string_view module = without_ending(module_of(name), ".token_adapter");
      return insert(parts_.tokens, without_base_layers(module), key, tensor);
    }
    const auto parsed = parse_file_name(type_, key);
    if (parsed) {
      const bool is_whole = parsed->module.empty() || parsed->module == kWhole;
      if (is_whole && has_word(type_.shared, parsed->parameter)) return insert(parts_.shared, name, key, tensor);
      if (has_word(type_.training, parsed->parameter)) return;
      const std::string part = file_name({{}, parsed->parameter, parsed->rest});
      if (has_word(type_.merged_parameters(), part))
        return insert(module_called(without_prefix(parsed->module)).parts, part, key, tensor);
    }
    insert(parts_.replaced, without_base_layers(name), key, tensor);
  }

  Module& module_called(std::string_view wrapped) {
    const auto [number, is_new] = numbers_.try_emplace(std::string(wrapped), parts_.modules.size());
    if (!is_new) return parts_.modules[number->second];
    while (wrapped.ends_with(kBaseLayer)) wrapped.remove_suffix(kBaseLayer.size());
    Module module;
    module.name = without_base_layers(wrapped);
    module.is_inside_wrapper = module.name.size() != wrapped.size();
    return parts_.modules.emplace_back(std::move(module));
  }

  static void insert(Tensors& tensors, std::string_view name, std::string_view key, const Tensor& tensor) {
    if (tensors.try_emplace(std::string(name), tensor).second) return;
    throw Error(Errc::malformed,
                fmt::format("the adapter has {} twice, the second time as {}", quote(name), quote(key)));
  }

  const Adapter& adapter_;
  const PeftType& type_;
  std::map<std::string, std::size_t> numbers_;  // of modules, by their names with wrappers
  Parts parts_;
};

}  // namespace

Parts take_apart(const Adapter& adapter, const PeftType& type) { return Taker(adapter, type).take(); }

}  // namespace ballast::peft
