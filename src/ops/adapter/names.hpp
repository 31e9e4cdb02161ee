// The names of an adapter's tensors, taken apart: in a file "MODULE.lora_A.weight", in a state dict, where a model may
// have several adapters, "MODULE.lora_A.NAME.weight".
//
// A name is cut at its dots and looked at from behind, so that a module or an adapter may be called anything: "lora_A",
// "weight", "default", or like the beginning of another adapter.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/adapter/types.hpp"

namespace ballast::adapter {

struct ParameterName {
  std::string_view module;     // "base_model.model.layers.0.q_proj"; "base_model" of the adapter as a whole
  std::string_view parameter;  // "lora_A"
  std::string_view rest;       // "weight"; empty where nothing follows

  bool is_shared(const PeftType& type) const { return module == "base_model" && !is_layer(type); }
  bool is_layer(const PeftType& type) const { return module != "base_model" && has_word(type.layer, parameter); }
};

// Nothing where the name is that of something else.
std::optional<ParameterName> parse_file_name(const PeftType& type, std::string_view name);
std::optional<ParameterName> parse_state_name(const PeftType& type, std::string_view name, std::string_view adapter);

// The adapter that a tensor of a state dict belongs to.
std::optional<std::string> adapter_in(const PeftType& type, std::string_view state_name);

// The names of both kinds that stand for it. What DoRA keeps in a module of its own is in files without ".weight".
std::string file_name(const PeftType& type, const ParameterName& name);
std::string state_name(const PeftType& type, const ParameterName& name, std::string_view adapter);

// "_fsdp_wrapped_module" and "_orig_mod", which training leaves between the segments, taken out.
std::string without_wrappers(std::string_view name);

// Segments from the left: to look at, or to take, and then the text loses what it gives.
std::string_view first_segment(std::string_view text);
std::string_view take_segment(std::string_view& text);

}  // namespace ballast::adapter
