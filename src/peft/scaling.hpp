// r and lora_alpha of a configuration: the factor of a low-rank change at each module, and how to write it down.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <ballast/adapter.hpp>

namespace ballast::peft {

struct Scale {
  double rank = 0, alpha = 0;
  auto operator<=>(const Scale&) const = default;
};

// r and alpha that the configuration has for a module; PEFT's default is 8 for both. LoHa and LoKr call the second one
// "alpha".
Scale scale_at(const AdapterConfig& config, std::string_view module, std::string_view alpha_field = "lora_alpha");

// alpha / r, or alpha / √r if "use_rslora" is set; not a number if they do not give one.
double factor_of(const AdapterConfig& config, const Scale& scale);

// The same for a module. Errc::malformed if it is not a number.
double scaling_at(const AdapterConfig& config, std::string_view module, std::string_view alpha_field = "lora_alpha");

// Writes r, lora_alpha, rank_pattern and alpha_pattern: what most modules have, the larger of two that as many have,
// and a pattern for each other module.
void write_scales(AdapterConfig& config, const std::map<std::string, Scale>& scales);

}  // namespace ballast::peft
