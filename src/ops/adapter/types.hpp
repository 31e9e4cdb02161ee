// Every type of adapter that PEFT has, as data: what its parameters are called, and which of them a file holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <ballast/adapter.hpp>

namespace ballast::adapter {

enum class Kind : std::uint8_t {
  layers,      // modules are wrapped; parameters carry the adapter's name
  adaption,    // modules are wrapped, and parameters carry no name
  prompt,      // nothing is wrapped: a prompt encoder stands beside the base
  classifier,  // X-LoRA: a classifier beside a model that has its adapters already
};

// Lists of words are separated by spaces.
struct PeftType {
  std::string_view name;             // "LORA"
  std::string_view prefix = {};      // of its parameters
  std::string_view layer = {};       // parameters of an adapted module: "MODULE.lora_A.NAME.weight"
  std::string_view shared = {};      // of the adapter as a whole, with a copy at each module that is not saved
  std::string_view categories = {};  // of the adapter as a whole, one a category: "base_model.frod_V.q_proj.NAME"
  std::string_view optional = {};    // those of them that a file holds only where ...
  std::string_view saved_if = {};    // ... this field of the configuration is true
  Kind kind = Kind::layers;
  std::string_view wrapper = "base_layer";  // where the module that is adapted goes
};

std::span<const PeftType> peft_types() noexcept;

// Throws Errc::unsupported for a type that nobody knows, with the nearest that there is.
const PeftType& peft_type(const AdapterConfig& config);

bool has_word(std::string_view words, std::string_view word) noexcept;

// Whether a segment of a name is a parameter of this type, or of any.
bool is_parameter(const PeftType& type, std::string_view segment) noexcept;
bool is_any_parameter(std::string_view segment) noexcept;
bool is_any_shared(std::string_view segment) noexcept;  // of an adapter as a whole

// Whether a file holds this parameter of the type.
bool is_saved(const PeftType& type, const AdapterConfig& config, std::string_view parameter);

}  // namespace ballast::adapter
