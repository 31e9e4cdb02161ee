#include "ops/adapter/deduce.hpp"

#include <ballast/error.hpp>

#include <re2/re2.h>
#include <algorithm>
#include <map>
#include <set>

#include "ops/adapter/names.hpp"
#include "ops/adapter/prefix.hpp"

namespace ballast::adapter {
namespace {

void say_ranks(Adapter& adapter, const PeftType& type) {
  std::map<std::string, std::uint64_t> ranks;
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(type, name);
    const bool is_a = parsed && (parsed->parameter == "lora_A" || parsed->parameter == "lora_embedding_A");
    if (!is_a || tensor.rank() < 2) continue;
    ranks[std::string(parsed->module.substr(prefix_of(parsed->module).size()))] = tensor.shape()[0];
    ++counts[tensor.shape()[0]];
  }
  if (counts.empty()) return;
  const std::uint64_t rank =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
  Json::Members rank_pattern, alpha_pattern;
  for (const auto& [module, other] : ranks) {
    if (other == rank) continue;
    rank_pattern.emplace_back("^" + re2::RE2::QuoteMeta(module), other);
    alpha_pattern.emplace_back("^" + re2::RE2::QuoteMeta(module), other);
  }
  adapter.config.fields.set("r", rank);
  adapter.config.fields.set("lora_alpha", rank);
  adapter.config.fields.set("rank_pattern", rank_pattern);
  adapter.config.fields.set("alpha_pattern", alpha_pattern);
}

// Of a prompt, all must be there: none is of a layer.
std::uint64_t tensors_of(const PeftType& type, const StateDict& tensors) {
  std::uint64_t count = 0;
  for (const auto& [name, tensor] : tensors) count += parse_file_name(type, name) ? 1u : 0u;
  const auto words = 1 + std::ranges::count(type.layer, ' ');
  return type.kind == Kind::prompt && count != static_cast<std::uint64_t>(words) ? 0 : count;
}

}  // namespace

// Those that have the most of the tensors; of types that wrap layers, the first in the table: a LoRA rather than an
// AdaLoRA.
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

void deduce_config(Adapter& adapter) {
  const std::vector<const PeftType*> types = possible_types(adapter.tensors);
  if (types.empty()) {
    throw Error(Errc::not_found, "no adapter_config.json, and tensors that do not tell what kind of adapter they are")
        .in(adapter.source)
        .hint("put the adapter_config.json beside the weights");
  }
  const PeftType* type = types.front();
  std::set<std::string> targets, whole;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(*type, name);
    const std::string_view rest = name.substr(prefix_of(name).size());
    if (parsed && parsed->is_layer(*type) && type->kind != Kind::prompt)
      targets.emplace(parsed->module.substr(prefix_of(parsed->module).size()));
    else if (!parsed && rest.find('.') != std::string_view::npos)
      whole.emplace(rest.substr(0, rest.rfind('.')));
  }
  Json& fields = adapter.config.fields;
  if (types.size() == 1) fields.set("peft_type", type->name);
  fields.set("base_model_name_or_path", nullptr);
  fields.set("task_type", nullptr);
  fields.set("inference_mode", true);
  if (!targets.empty()) fields.set("target_modules", Json::List(targets.begin(), targets.end()));
  if (!whole.empty()) fields.set("modules_to_save", Json::List(whole.begin(), whole.end()));
  if (type->name == "LORA") say_ranks(adapter, *type);
  const std::string what = types.size() > 1       ? "several methods have these tensors, and nothing says which it is"
                           : type->name == "LORA" ? "lora_alpha is taken to be the rank, a scaling of 1"
                                                  : "the type is told by the tensors' names";
  adapter.notes.push_back({adapter.source, "there is no adapter_config.json: " + what, Note::Kind::remark});
}

}  // namespace ballast::adapter
