// The names of an adapter's tensors: in a file "base_model.model.MODULE.lora_A.weight", and in a state dict, where a
// model may have several adapters, "base_model.model.MODULE.lora_A.NAME.weight".
//
// A name is cut at its dots and looked at from behind, so that a module or an adapter may be called anything: "lora_A",
// "weight", "default", or like the beginning of another adapter.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peft/types.hpp"

namespace ballast::peft {

inline constexpr std::string_view kWhole = "base_model";          // the module that stands for the whole adapter
inline constexpr std::string_view kRoot = "base_model.";          // before names of the whole adapter
inline constexpr std::string_view kPrefix = "base_model.model.";  // before names of the base
inline constexpr std::string_view kBaseLayer = ".base_layer";     // behind a module that PEFT has wrapped
inline constexpr std::string_view kTokenDelta = ".token_adapter.trainable_tokens_delta";

// The one of kPrefix and kRoot that the name begins with, or nothing; and the name without it.
std::string_view prefix_of(std::string_view name);
std::string_view without_prefix(std::string_view name);

bool has_prefix(const StateDict& tensors);  // whether any name has one
// Names of the whole adapter get kRoot, a prompt ("prompt_embeddings") gets nothing, all others get kPrefix.
StateDict with_prefix(const StateDict& tensors);
StateDict without_prefix(const StateDict& tensors);  // throws Errc::invalid_argument if two names become one

struct ParameterName {
  std::string_view module;     // "base_model.model.layers.0.q_proj"; "base_model" for the whole adapter
  std::string_view parameter;  // "lora_A"
  std::string_view rest;       // "weight"; empty if nothing follows

  bool is_layer(const PeftType& type) const {
    return module != kWhole && (has_word(type.layer, parameter) || has_word(type.in_files, parameter));
  }
};

// Nothing if the name is not one of a parameter of this type.
std::optional<ParameterName> parse_file_name(const PeftType& type, std::string_view name);
std::optional<ParameterName> parse_state_name(const PeftType& type, std::string_view name, std::string_view adapter);

// Which of the two matrices of a LoRA a tensor of a file is: 'A' or 'B', of an embedding too; 0 for any other tensor.
char lora_half(const ParameterName& name);

// The adapter that a tensor of a state dict belongs to.
std::optional<std::string> adapter_in(const PeftType& type, std::string_view state_name);

// The name of a parameter in a file and in a state dict. DoRA's magnitudes lose ".weight" in files.
std::string file_name(const ParameterName& name);
std::string state_name(const PeftType& type, const ParameterName& name, std::string_view adapter);

// Without ".base_layer", wherever it stands.
std::string without_base_layers(std::string_view name);

// Segments from the left: to look at, or to take away from the text.
std::string_view first_segment(std::string_view text);
std::string_view take_segment(std::string_view& text);
std::optional<std::uint64_t> number_in(std::string_view segment);  // nothing if it is not a number

std::string_view module_of(std::string_view tensor);  // all but the last segment
std::string_view without_ending(std::string_view text,
                                std::string_view ending);  // the text itself if it ends otherwise

}  // namespace ballast::peft
