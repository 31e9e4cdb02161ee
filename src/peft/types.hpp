// The one table of PEFT's types: what the parameters of each are called, which of them a file holds, and the rule that
// merges them, or the reason why there is none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/adapter.hpp>

namespace ballast::peft {

struct Task;  // one module of one adapter, for a rule of merging: see merge/module.hpp

enum class Kind : std::uint8_t {
  layers,      // the type wraps modules, and its parameters carry the adapter's name
  adaption,    // the type wraps modules, and its parameters carry no name
  prompt,      // the type wraps nothing: a prompt encoder stands beside the base
  classifier,  // X-LoRA: a classifier stands beside a model that has its adapters already
};

// Lists of words are separated by spaces.
struct PeftType {
  std::string_view name;             // "LORA"
  std::string_view prefix = {};      // of the parameters
  std::string_view layer = {};       // parameters of an adapted module: "MODULE.lora_A.NAME.weight"
  std::string_view in_files = {};    // parameters of an adapted module that files have instead of others
  std::string_view shared = {};      // parameters of the whole adapter; state dicts have a copy at each module
  std::string_view categories = {};  // parameters of the whole adapter, one a category: "base_model.frod_V.q_proj.NAME"
  std::string_view optional = {};    // those of all these that a file holds only if ...
  std::string_view saved_if = {};    // ... this field of the configuration is true
  Kind kind = Kind::layers;
  std::string_view wrapper = "base_layer";  // the name under which the adapted module goes on

  std::string_view formula = {};         // of merging, in a line; empty for a type that is not merged
  std::string_view why_not = {};         // a sentence for a type that is not merged; empty for the others
  void (*merge)(const Task&) = nullptr;  // the rule for a module; trained tokens need none
  std::string_view merged = {};          // what the rule takes, as names in files end; if empty, all of `layer`
  std::string_view training = {};        // parameters that only training uses: merging passes over them
  bool turns_one_side = false;           // the rule turns the inputs or the outputs, so it must know which is which

  constexpr std::string_view merged_parameters() const { return formula.empty() || !merged.empty() ? merged : layer; }
};

// In the order of importance: of two types that have the same parameters, the first one is the likelier.
std::span<const PeftType> peft_types() noexcept;

// Throws Errc::unsupported for a type that is not in the table, with the nearest one that is.
const PeftType& peft_type(const AdapterConfig& config);

bool has_word(std::string_view words, std::string_view word) noexcept;

// Whether a segment of a name is a parameter of this type, or of any type, or belongs to an adapter as a whole.
bool is_parameter(const PeftType& type, std::string_view segment) noexcept;
bool is_any_parameter(std::string_view segment) noexcept;
bool is_any_shared(std::string_view segment) noexcept;

// Whether a file holds this parameter of the type.
bool is_saved(const PeftType& type, const AdapterConfig& config, std::string_view parameter);

// Kinds of LoRA that PEFT calls variants, each told by a field of the configuration.
struct LoraVariant {
  std::string_view name;          // "DoRA"
  std::string_view field;         // "use_dora"
  std::string_view why_not = {};  // as in PeftType
};

// The variants that the configuration of a LoRA asks for: PEFT allows one. Empty for any other type.
std::vector<const LoraVariant*> lora_variants(const AdapterConfig& config);

// Why an adapter of this configuration cannot be merged into any base; empty if it can be.
std::string_view why_not_merged(const PeftType& type, const AdapterConfig& config);

}  // namespace ballast::peft
