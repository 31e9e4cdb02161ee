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

// The type that has the most of the tensors; of several, the first in the table: a LoRA rather than an AdaLoRA.
const PeftType* likeliest_type(const StateDict& tensors) {
  const PeftType* best = nullptr;
  std::uint64_t most = 0;
  for (const PeftType& type : peft_types()) {
    std::uint64_t count = 0;
    for (const auto& [name, tensor] : tensors) count += parse_file_name(type, name) ? 1u : 0u;
    if (count <= most) continue;
    best = &type;
    most = count;
  }
  return best;
}

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

}  // namespace

void deduce_config(Adapter& adapter) {
  const PeftType* type = likeliest_type(adapter.tensors);
  if (type == nullptr) {
    throw Error(Errc::not_found, "no adapter_config.json, and tensors that do not tell what kind of adapter they are")
        .in(adapter.source)
        .hint("put the adapter_config.json beside the weights");
  }
  std::set<std::string> targets, whole;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(*type, name);
    const std::string_view rest = name.substr(prefix_of(name).size());
    if (parsed && parsed->is_layer(*type))
      targets.emplace(parsed->module.substr(prefix_of(parsed->module).size()));
    else if (!parsed && rest.find('.') != std::string_view::npos)
      whole.emplace(rest.substr(0, rest.rfind('.')));
  }
  Json& fields = adapter.config.fields;
  fields.set("peft_type", type->name);
  fields.set("base_model_name_or_path", nullptr);
  fields.set("task_type", nullptr);
  fields.set("inference_mode", true);
  if (!targets.empty()) fields.set("target_modules", Json::List(targets.begin(), targets.end()));
  if (!whole.empty()) fields.set("modules_to_save", Json::List(whole.begin(), whole.end()));
  if (type->name == "LORA") say_ranks(adapter, *type);
  adapter.notes.push_back({adapter.source,
                           type->name == "LORA"
                               ? "there is no adapter_config.json: lora_alpha is taken to be the rank, a scaling of 1"
                               : "there is no adapter_config.json: the type is told by the tensors' names",
                           Note::Kind::remark});
}

}  // namespace ballast::adapter
