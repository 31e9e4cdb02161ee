// An adapter at a glance, and what is wrong with it.
#include <ballast/adapter.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "ops/adapter/deduce.hpp"
#include "ops/adapter/initial.hpp"
#include "ops/adapter/names.hpp"
#include "ops/adapter/prefix.hpp"
#include "ops/names_values.hpp"

namespace ballast {
namespace {

using namespace adapter;  // NOLINT(google-build-using-namespace): these are its public functions

// The modules of a LoRA with what they have.
struct FactorPair {
  const Tensor *a = nullptr, *b = nullptr;
};

std::string_view module_of(const ParameterName& parsed) {
  return parsed.module.substr(std::min(parsed.module.size(), prefix_of(parsed.module).size()));
}

// Without what PEFT has wrapped around it.
std::string_view shown_module(const ParameterName& parsed) {
  std::string_view module = module_of(parsed);
  constexpr std::string_view kWrapped = ".base_layer";
  while (module.ends_with(kWrapped)) module.remove_suffix(kWrapped.size());
  return module;
}

// "q_proj"; of modules that are numbered, with what they are the parts of: "to_out.0".
std::string last_name(std::string_view module) {
  std::size_t begin = module.size();
  bool is_number = true;
  while (is_number && begin > 0) {
    const std::size_t end = begin == module.size() ? begin : begin - 1;
    const std::size_t dot = module.substr(0, end).rfind('.');
    begin = dot == std::string_view::npos ? 0 : dot + 1;
    const std::string_view segment = module.substr(begin, end - begin);
    is_number = std::ranges::all_of(segment, [](char c) { return c >= '0' && c <= '9'; });
  }
  return module.empty() ? "(the model itself)" : std::string(module.substr(begin));
}

std::map<std::string, FactorPair, std::less<>> pairs_of(const Adapter& adapter, const PeftType& type) {
  std::map<std::string, FactorPair, std::less<>> pairs;
  for (const auto& [name, tensor] : adapter.tensors) {
    const auto parsed = parse_file_name(type, name);
    if (!parsed || parsed->rest == "bias") continue;
    const bool is_a = parsed->parameter == "lora_A" || parsed->parameter == "lora_embedding_A";
    const bool is_b = parsed->parameter == "lora_B" || parsed->parameter == "lora_embedding_B";
    if (is_a) pairs[std::string(module_of(*parsed))].a = &tensor;
    if (is_b) pairs[std::string(module_of(*parsed))].b = &tensor;
  }
  return pairs;
}

// The parameters of target_parameters have the ranks of all experts one after the other.
bool is_parameter_target(const AdapterConfig& config) {
  const Json* parameters = config.find("target_parameters");
  return parameters != nullptr && parameters->is_list() && !parameters->list().empty();
}

// All that the adapter may be; several only for a prompt without a configuration.
std::vector<const PeftType*> types_of(const Adapter& adapter) {
  if (adapter.config.find("peft_type") == nullptr) {
    auto types = possible_types(adapter.tensors);
    if (types.size() > 1) return types;
  }
  return {&peft_type(adapter.config)};
}

std::string names_of(const std::vector<const PeftType*>& types) {
  std::string names;
  for (std::size_t i = 0; i < types.size(); ++i)
    names += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + std::string(types[i]->name);
  return names;
}

const PeftType& type_of(const Adapter& adapter) {
  const auto types = types_of(adapter);
  if (types.size() == 1) return *types.front();
  throw Error(Errc::unsupported, "nothing says which method made the prompt: " + names_of(types))
      .hint("put the adapter_config.json beside the weights");
}

class Problems {
 public:
  explicit Problems(const Adapter& adapter) : adapter_(adapter) {}

  std::vector<AdapterProblem> find() {
    if (adapter_.tensors.empty()) {
      add(Errc::not_found, "the adapter has no tensors", "was it saved whole?");
      return std::move(found_);
    }
    try {
      const PeftType& type = type_of(adapter_);
      check_names(type);
      if (adapter_.dialect == AdapterDialect::gguf) check_gguf(type);
      if (type.name == "LORA") check_lora(type);
    } catch (const Error& error) {
      add(error.code(), error.message(), error.hint());
    }
    return std::move(found_);
  }

 private:
  void add(Errc code, std::string text, std::string hint, bool is_harmless = false) {
    found_.push_back({code, std::move(text), std::move(hint), is_harmless});
  }

  void check_names(const PeftType& type) {
    const auto belongs = [&](const auto& entry) { return parse_file_name(type, entry.name).has_value(); };
    if (std::any_of(adapter_.tensors.begin(), adapter_.tensors.end(), belongs)) return;
    add(Errc::mismatch,
        "no tensor is one of " + std::string(type.name) + ", such as " + quote(adapter_.tensors[0].name) + " is none",
        "is this the adapter_config.json that belongs to the weights?");
  }

  // One of each kind says it all: of an architecture, or of the heads that nothing says.
  void check_gguf(const PeftType& type) {
    bool has_name = false, has_rows = false;
    for (const auto& [name, tensor] : adapter_.tensors) {
      const auto parsed = parse_file_name(type, name);
      if (!parsed) continue;
      const std::string_view module = module_of(*parsed);
      const bool is_of_gguf = module.starts_with("blk.") || module == "token_embd" || module == "output";
      if (is_of_gguf && !std::exchange(has_name, true)) {
        const auto said = adapter_.metadata.find("general.architecture");
        add(Errc::unsupported,
            "module " + quote(module) + " has no name in PEFT for the architecture " +
                (said == adapter_.metadata.end() ? "that nothing says" : quote(said->second)),
            "if that is not what it is, name the right one with --architecture");
      }
      const Error* why = names::why_unreadable(tensor);
      if (why != nullptr && !std::exchange(has_rows, true)) add(why->code(), why->message(), why->hint());
    }
  }

  void check_lora(const PeftType& type) {
    const auto pairs = pairs_of(adapter_, type);
    bool has_rank = false;  // one disagreement says it all
    for (const auto& [module, pair] : pairs) {
      if (pair.a == nullptr || pair.b == nullptr) {
        add(Errc::mismatch, "module " + quote(module) + " has only one half of its LoRA", "was the file saved whole?");
        continue;
      }
      if (!has_rank) has_rank = check_rank(module, pair);
    }
    std::set<double> alphas;
    for (const auto& [module, pair] : pairs) {
      lora_scaling(adapter_.config, module);  // throws where it is no number
      alphas.insert(lora_alpha(adapter_.config, module));
    }
    if (std::string why = why_base_is_another(adapter_.config); !why.empty())
      add(Errc::unsupported, std::move(why), "its own base is not the one that was published", true);
    if (alphas.contains(0)) {
      add(Errc::invalid_argument, "an alpha of 0: the adapter changes nothing",
          "correct \"lora_alpha\" in adapter_config.json; alpha = r is a scaling of 1", true);
    }
  }

  bool check_rank(const std::string& module, const FactorPair& pair) {
    if (pair.a->rank() < 2 || pair.b->rank() < 2) {
      add(Errc::malformed, "the LoRA of module " + quote(module) + " is no pair of matrices", "was it saved by PEFT?");
      return true;
    }
    const std::uint64_t rows = pair.a->shape()[0], columns = pair.b->shape()[1];
    const double rank = lora_rank(adapter_.config, module);
    if (rows != columns) {
      add(Errc::mismatch,
          "module " + quote(module) + " has an A of rank " + std::to_string(rows) + " and a B of rank " +
              std::to_string(columns),
          "are all tensors of the same adapter?");
      return true;
    }
    if (static_cast<double>(rows) == rank || is_parameter_target(adapter_.config)) return false;
    add(Errc::mismatch,
        fmt::format("the configuration says rank {} for module {}, its tensors have {}", rank, quote(module), rows),
        "correct \"r\" or \"rank_pattern\" in adapter_config.json: the scaling depends on it");
    return true;
  }

  const Adapter& adapter_;
  std::vector<AdapterProblem> found_;
};

std::vector<AdapterSummary::Scale> scales_of(const Adapter& adapter, const PeftType& type) {
  std::map<std::pair<double, double>, std::uint64_t> counts;
  for (const auto& [module, pair] : pairs_of(adapter, type))
    ++counts[{lora_rank(adapter.config, module), lora_alpha(adapter.config, module)}];
  std::vector<AdapterSummary::Scale> scales;
  for (const auto& [scale, count] : counts) {
    const double root = adapter.config.is_set("use_rslora") ? std::sqrt(scale.first) : scale.first;
    scales.push_back({scale.first, scale.second, scale.second / root, count});
  }
  std::ranges::stable_sort(scales, std::greater<>(), &AdapterSummary::Scale::modules);
  return scales;
}

}  // namespace

std::vector<AdapterProblem> find_problems(const Adapter& adapter) { return Problems(adapter).find(); }

void check_adapter(const Adapter& adapter) {
  for (const AdapterProblem& problem : find_problems(adapter)) {
    if (!problem.is_harmless) throw Error(problem.code, problem.text).in(adapter.source).hint(problem.hint);
  }
}

AdapterSummary summarize(const Adapter& adapter) {
  AdapterSummary summary;
  const std::vector<const PeftType*> types = types_of(adapter);
  const PeftType& type = *types.front();
  for (const PeftType* possible : types) summary.possible_types.emplace_back(possible->name);
  if (types.size() == 1) summary.type = type.name;
  summary.base_model = adapter.config.text("base_model_name_or_path");

  std::set<std::string, std::less<>> modules, whole;
  std::map<DType, std::uint64_t> dtypes;
  for (const auto& [name, tensor] : adapter.tensors) {
    ++summary.tensors;
    ++dtypes[tensor.dtype()];
    summary.parameters += tensor.numel();
    summary.bytes += tensor.nbytes();
    const auto parsed = parse_file_name(type, name);
    const bool is_token_adapter = name.ends_with(".token_adapter.trainable_tokens_delta");
    if (parsed && parsed->is_layer(type) && type.kind != Kind::prompt)
      modules.emplace(shown_module(*parsed));
    else if (!parsed && !is_token_adapter && name.find('.') != std::string_view::npos)
      whole.emplace(name.substr(prefix_of(name).size(), name.rfind('.') - prefix_of(name).size()));
  }
  std::map<std::string, std::uint64_t> counts;
  for (const std::string& module : modules) ++counts[last_name(module)];
  for (const auto& [name, count] : counts) summary.modules.push_back({name, count});
  std::ranges::sort(summary.modules, [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  summary.saved_whole.assign(whole.begin(), whole.end());
  for (const auto& [dtype, count] : dtypes) summary.dtypes.push_back(dtype);
  std::ranges::stable_sort(summary.dtypes, std::greater<>(), [&](DType dtype) { return dtypes[dtype]; });
  if (type.name == "LORA") summary.scales = scales_of(adapter, type);
  return summary;
}

}  // namespace ballast
