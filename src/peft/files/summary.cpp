// An adapter at a glance.
#include <ballast/adapter.hpp>

#include <algorithm>

#include "core/text.hpp"
#include "peft/files/deduce.hpp"
#include "peft/names.hpp"
#include "peft/scaling.hpp"

namespace ballast {
namespace peft {
namespace {

// "q_proj", and "to_out.0" for modules that have only a number of their own.
std::string last_name(std::string_view module) {
  std::size_t begin = module.size();
  for (bool is_numbered = true; is_numbered && begin > 0;) {
    const std::size_t end = begin == module.size() ? begin : begin - 1;
    const std::size_t dot = module.substr(0, end).rfind('.');
    begin = dot == std::string_view::npos ? 0 : dot + 1;
    is_numbered = number_in(module.substr(begin, end - begin)).has_value();
  }
  return module.empty() ? "(the model itself)" : std::string(module.substr(begin));
}

std::vector<AdapterSummary::Scale> scales_of(const Adapter& adapter, const PeftType& type) {
  std::map<Scale, std::uint64_t> counts;
  for (const auto& [module, pair] : lora_pairs(adapter, type)) ++counts[scale_at(adapter.config, module)];
  std::vector<AdapterSummary::Scale> scales;
  for (const auto& [scale, count] : counts)
    scales.push_back({scale.rank, scale.alpha, factor_of(adapter.config, scale), count});
  std::ranges::stable_sort(scales, std::greater<>(), &AdapterSummary::Scale::modules);
  return scales;
}

void add_sizes(AdapterSummary& summary, const Adapter& adapter) {
  std::map<DType, std::uint64_t> dtypes;
  for (const auto& [name, tensor] : adapter.tensors) {
    ++summary.tensors;
    ++dtypes[tensor.dtype()];
    summary.parameters += tensor.numel();
    summary.bytes += tensor.nbytes();
  }
  for (const auto& [dtype, count] : dtypes) summary.dtypes.push_back(dtype);
  std::ranges::stable_sort(summary.dtypes, std::greater<>(), [&](DType dtype) { return dtypes[dtype]; });
}

}  // namespace

}  // namespace peft

AdapterSummary summarize(const Adapter& adapter) {
  AdapterSummary summary;
  const std::vector<const peft::PeftType*> types = peft::types_of(adapter);
  const peft::PeftType& type = *types.front();
  for (const peft::PeftType* possible : types) summary.possible_types.emplace_back(possible->name);
  if (types.size() == 1) summary.type = type.name;
  for (const peft::LoraVariant* variant : peft::lora_variants(adapter.config))
    summary.variants.emplace_back(variant->name);
  summary.base_model = adapter.config.text("base_model_name_or_path");
  const auto [adapted, whole] = peft::modules_of(adapter, type);
  std::map<std::string, std::uint64_t> counts;
  for (const std::string& module : adapted) ++counts[peft::last_name(module)];
  for (const auto& [name, count] : counts) summary.modules.push_back({name, count});
  std::ranges::sort(summary.modules, [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  summary.saved_whole.assign(whole.begin(), whole.end());
  peft::add_sizes(summary, adapter);
  if (type.name == "LORA") summary.scales = peft::scales_of(adapter, type);
  summary.why_not_merged = peft::why_not_merged(type, adapter.config);
  if (summary.why_not_merged.empty()) summary.formula = type.formula;
  return summary;
}

}  // namespace ballast
