// "base_model.model.": how PEFT's files begin every name of the base, and what portable files leave out.
#pragma once

#include <string>
#include <string_view>

#include <ballast/state_dict.hpp>

namespace ballast::adapter {

inline constexpr std::string_view kRoot = "base_model.";          // of what belongs to the adapter as a whole
inline constexpr std::string_view kPrefix = "base_model.model.";  // of what belongs to a module of the base

// The prefix that `name` has, of those two; empty where it has none.
std::string_view prefix_of(std::string_view name);

bool has_prefix(const StateDict& tensors);  // whether any name has one
// What belongs to the adapter as a whole gets the shorter one, a prompt ("prompt_embeddings") none.
StateDict with_prefix(const StateDict& tensors);
StateDict without_prefix(const StateDict& tensors);  // throws Errc::invalid_argument where two names become one

}  // namespace ballast::adapter
