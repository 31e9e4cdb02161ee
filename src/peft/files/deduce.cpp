#include "peft/files/deduce.hpp"

#include <ballast/error.hpp>

#include <algorithm>

#include "peft/names.hpp"
#include "peft/scaling.hpp"

namespace ballast::peft {
namespace {

// How many of the tensors are of this type. A prompt must have all of its tensors, since none belongs to a layer.
std::uint64_t tensors_of(const PeftType& type, const StateDict& tensors) {
  std::uint64_t count = 0;
  for (const auto& [name, tensor] : tensors) count += parse_file_name(type, name) ? 1u : 0u;
  const auto words = 1 + std::ranges::count(type.layer, ' ');
  return type.kind == Kind::prompt && count != static_cast<std::uint64_t>(words) ? 0 : count;
}

// The types that have the most of the tensors. Of several that wrap layers, the first in the table counts: a LoRA
// rather than an AdaLoRA.
std::vector<const PeftType*> possible_types(const StateDict& tensors) {
  std::vector<const PeftType*> best;
  std::uint64_t most = 1;
  for (const PeftType& type : peft_types()) {
    const std::uint64_t count = tensors_of(type, tensors);
    if (count > most) best.clear();
    if (count < most || (!best.empty() && type.kind != Kind::prompt)) continue;
    best.push_back(&type);
    most = count;
  }
  return best;
}

}  // namespace

std::vector<const PeftType*> types_of(const Adapter& adapter) {
  if (adapter.config.find("peft_type") == nullptr) {
    auto types = possible_types(adapter.tensors);
    if (types.size() > 1) return types;
  }
  return {&peft_type(adapter.config)};
}

AdapterModules modules_of(const Adapter& adapter, const PeftType& type) {
  AdapterModules modules;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(type, name);
    if (parsed && parsed->is_layer(type) && type.kind != Kind::prompt) {
      modules.adapted.insert(without_base_layers(without_prefix(parsed->module)));
    } else if (!parsed && !name.ends_with(kTokenDelta) && name.find('.') != std::string_view::npos) {
      modules.whole.emplace(module_of(without_prefix(name)));
    }
  }
  return modules;
}

std::map<std::string, LoraPair, std::less<>> lora_pairs(const Adapter& adapter, const PeftType& type) {
  std::map<std::string, LoraPair, std::less<>> pairs;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(type, name);
    const char half = parsed ? lora_half(*parsed) : 0;
    if (half == 0) continue;
    LoraPair& pair = pairs[std::string(without_prefix(parsed->module))];
    (half == 'A' ? pair.a : pair.b) = &tensor;
  }
  return pairs;
}

void deduce_config(Adapter& adapter) {
  const std::vector<const PeftType*> types = possible_types(adapter.tensors);
  if (types.empty()) {
    throw Error(Errc::not_found, "no adapter_config.json, and tensors that do not tell what kind of adapter they are")
        .in(adapter.source)
        .hint("put the adapter_config.json beside the weights");
  }
  const PeftType& type = *types.front();
  const auto [adapted, whole] = modules_of(adapter, type);
  Json& fields = adapter.config.fields;
  if (types.size() == 1) fields.set("peft_type", type.name);
  fields.set("base_model_name_or_path", nullptr);
  fields.set("task_type", nullptr);
  fields.set("inference_mode", true);
  if (!adapted.empty()) fields.set("target_modules", Json::List(adapted.begin(), adapted.end()));
  if (!whole.empty()) fields.set("modules_to_save", Json::List(whole.begin(), whole.end()));
  std::string what = types.size() > 1 ? "several methods have these tensors, and nothing says which it is"
                                      : "the type is told by the tensors' names";
  if (type.name == "LORA") {
    std::map<std::string, Scale> scales;
    for (const auto& [module, pair] : lora_pairs(adapter, type)) {
      const double rank = pair.a == nullptr || pair.a->rank() < 2 ? 0 : static_cast<double>(pair.a->shape()[0]);
      if (rank != 0) scales[module] = {rank, rank};
    }
    write_scales(adapter.config, scales);
    what = "lora_alpha is taken to be the rank, a scaling of 1";
  }
  adapter.notes.push_back({adapter.source, "there is no adapter_config.json: " + what, Note::Kind::remark});
}

}  // namespace ballast::peft
