// The faults of an adapter.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/remedy.hpp"
#include "core/saturate.hpp"
#include "core/text.hpp"
#include "layout/names_values.hpp"
#include "peft/files/deduce.hpp"
#include "peft/hints.hpp"
#include "peft/initial.hpp"
#include "peft/names.hpp"
#include "peft/targets.hpp"

namespace ballast {
namespace peft {
namespace {

const PeftType& only_type_of(const Adapter& adapter) {
  const auto types = types_of(adapter);
  if (types.size() == 1) return *types.front();
  std::string names;
  for (std::size_t i = 0; i < types.size(); ++i)
    names += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + std::string(types[i]->name);
  throw Error(Errc::unsupported, "nothing says which method made the prompt: " + names)
      .hint("put the adapter_config.json beside the weights");
}

class Problems {
 public:
  explicit Problems(const Adapter& adapter) : adapter_(adapter) {}

  std::vector<AdapterProblem> find() {
    if (adapter_.tensors.empty()) {
      add(Errc::not_found, "the adapter has no tensors", kWasItSavedWhole);
      return std::move(found_);
    }
    try {
      const PeftType& type = only_type_of(adapter_);
      check_names(type);
      if (adapter_.dialect == AdapterDialect::gguf) check_gguf(type);
      if (type.name == "LORA") check_lora(type);
      if (type.kind == Kind::prompt) check_prompt(type);
    } catch (const Error& error) {
      add(error.code(), error.message(), error.hint());
    }
    return std::move(found_);
  }

 private:
  void add(Errc code, std::string text, Advice hint, bool is_harmless = false) {
    found_.push_back({code, std::move(text), std::move(hint), is_harmless});
  }

  void check_names(const PeftType& type) {
    const std::vector<std::string> saved = adapter_.config.words("modules_to_save");
    const auto belongs = [&](const auto& entry) {
      return parse_file_name(type, entry.name) || entry.name.ends_with(kTokenDelta) ||
             is_saved_whole(saved, module_of(without_prefix(entry.name)));
    };
    if (std::any_of(adapter_.tensors.begin(), adapter_.tensors.end(), belongs)) return;
    add(Errc::mismatch,
        fmt::format("no tensor is one of {}; the first one is {}", type.name, quote(adapter_.tensors[0].name)),
        kIsItTheConfig);
  }

  // Two faults that all tensors of a GGUF share, each said once: an architecture whose names are not known, and heads
  // that nothing says.
  void check_gguf(const PeftType& type) {
    bool has_name = false, has_rows = false;
    for (const auto& [name, tensor] : adapter_.tensors) {
      const auto parsed = parse_file_name(type, name);
      if (!parsed) continue;
      const std::string_view module = without_prefix(parsed->module);
      const bool is_of_gguf = module.starts_with("blk.") || module == "token_embd" || module == "output";
      if (is_of_gguf && !std::exchange(has_name, true)) {
        const auto said = adapter_.metadata.find("general.architecture");
        add(Errc::unsupported,
            "module " + quote(module) + " has no name in PEFT for the architecture " +
                (said == adapter_.metadata.end() ? "that nothing says" : quote(said->second)),
            "if the architecture is another one, name it with " + mention(Remedy::architecture));
      }
      const Error* why = names::why_unreadable(tensor);
      if (why != nullptr && !std::exchange(has_rows, true)) add(why->code(), why->message(), why->hint());
    }
  }

  // The size of a prompt follows from the configuration. That of a prefix, which a cartridge is too, has keys and
  // values of every layer.
  void check_prompt(const PeftType& type) {
    const AdapterConfig& config = adapter_.config;
    for (const char* field : {"num_virtual_tokens", "token_dim", "num_layers", "num_attention_heads",
                              "num_transformer_submodules", "num_frozen_tokens"})
      static_cast<void>(config.count(field, 0));  // throws if it is not a whole number
    const Tensor* prompt = adapter_.tensors.find("prompt_embeddings");
    if (prompt == nullptr) return;
    if (prompt->rank() != 2)
      return add(Errc::malformed, "the prompt has the shape " + to_string(prompt->shape()) + ", and is no matrix",
                 kWasItSavedWhole);
    const std::uint64_t rows = prompt->shape()[0], width = prompt->shape()[1];
    const std::uint64_t tokens = config.count("num_virtual_tokens", rows);
    const std::uint64_t modules = config.count("num_transformer_submodules", 1);
    if (rows != tokens && rows != saturating_mul(tokens, modules))
      add_wrong_prompt("tokens", rows, tokens, "num_virtual_tokens");
    const bool is_prefix = type.name == "PREFIX_TUNING" || type.name == "CARTRIDGE";
    const std::uint64_t layers = is_prefix ? config.count("num_layers", 0) : 0;
    const std::uint64_t dim = config.count("token_dim", 0);
    const std::uint64_t wanted = saturating_mul(dim, layers == 0 ? 1 : saturating_mul(2, layers));
    if (dim != 0 && (!is_prefix || layers != 0) && wanted != width)
      add_wrong_prompt("numbers for each token", width, wanted,
                       is_prefix ? "num_layers\" or \"token_dim" : "token_dim");
    if (type.name == "CARTRIDGE" && config.count("num_frozen_tokens", 0) > rows)
      add_wrong_prompt("tokens", rows, config.count("num_frozen_tokens", 0), "num_frozen_tokens");
  }

  void add_wrong_prompt(std::string_view what, std::uint64_t found, std::uint64_t said, std::string_view field) {
    add(Errc::mismatch, fmt::format("the prompt has {} {}, the configuration says {}", found, what, said),
        fmt::format("correct \"{}\" in adapter_config.json", field));
  }

  void check_lora(const PeftType& type) {
    const auto pairs = lora_pairs(adapter_, type);
    bool has_rank = false;  // one disagreement about ranks is enough
    for (const auto& [module, pair] : pairs) {
      if (pair.a == nullptr || pair.b == nullptr) {
        add(Errc::mismatch, "module " + quote(module) + " has only one half of its LoRA", kWasItSavedWhole);
        continue;
      }
      if (!has_rank) has_rank = has_wrong_rank(module, pair);
    }
    std::set<double> scalings;
    for (const auto& [module, pair] : pairs) scalings.insert(lora_scaling(adapter_.config, module));
    if (std::string why = why_base_is_another(adapter_.config); !why.empty())
      add(Errc::unsupported, std::move(why), "its own base is not the one that was published", true);
    if (scalings.contains(0)) {
      add(Errc::invalid_argument, "an alpha of 0: the adapter changes nothing",
          "correct \"lora_alpha\" in adapter_config.json; alpha = r is a scaling of 1", true);
    }
  }

  // Also notes it.
  bool has_wrong_rank(const std::string& module, const LoraPair& pair) {
    if (pair.a->rank() < 2 || pair.b->rank() < 2) {
      add(Errc::malformed, "the LoRA of module " + quote(module) + " is not a pair of matrices",
          "was it saved by PEFT?");
      return true;
    }
    const std::uint64_t rows = pair.a->shape()[0], columns = pair.b->shape()[1];
    if (rows != columns) {
      add(Errc::mismatch, fmt::format("module {} has an A of rank {} and a B of rank {}", quote(module), rows, columns),
          "are all tensors of the same adapter?");
      return true;
    }
    const double rank = lora_rank(adapter_.config, module);
    // The matrices of target_parameters have the ranks of all experts one after the other.
    if (static_cast<double>(rows) == rank || !adapter_.config.words("target_parameters").empty()) return false;
    add(Errc::mismatch,
        fmt::format("the configuration says rank {} for module {}, its tensors have {}", rank, quote(module), rows),
        "correct \"r\" or \"rank_pattern\" in adapter_config.json: the scaling depends on it");
    return true;
  }

  const Adapter& adapter_;
  std::vector<AdapterProblem> found_;
};

}  // namespace
}  // namespace peft

std::vector<AdapterProblem> find_problems(const Adapter& adapter) { return peft::Problems(adapter).find(); }

void check_adapter(const Adapter& adapter) {
  for (const AdapterProblem& problem : find_problems(adapter)) {
    if (problem.is_harmless) continue;
    Error error(problem.code, problem.text);
    if (problem.code == Errc::not_found) error.about("");  // its tensors, since its file is there
    throw error.in(adapter.source).hint(problem.hint);
  }
}

}  // namespace ballast
