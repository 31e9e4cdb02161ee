// Patterns over modules' names in a configuration: rank_pattern, alpha_pattern.
#pragma once

#include <string_view>

#include <ballast/adapter.hpp>

namespace ballast::adapter {

// The value of the first key of `field` that means the module (without "base_model.model."), as PEFT looks for it:
// re.match(r"(.*\.)?({key})$", module), so that "q_proj" and "layers.0.self_attn.q_proj" both mean modules by their
// ends. Nothing where none does. Errc::unsupported for an expression that only Python understands.
const Json* find_pattern(const AdapterConfig& config, std::string_view field, std::string_view module);

}  // namespace ballast::adapter
