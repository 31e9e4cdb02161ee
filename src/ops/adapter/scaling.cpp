// The factor of a LoRA at a module.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <cmath>

#include <fmt/format.h>

#include "core/text.hpp"
#include "ops/adapter/patterns.hpp"

namespace ballast {
namespace {

// What PEFT takes where the configuration does not say.
constexpr double kDefaultRank = 8, kDefaultAlpha = 8;

}  // namespace

double lora_rank(const AdapterConfig& config, std::string_view module) {
  const Json* pattern = adapter::find_pattern(config, "rank_pattern", module);
  return pattern != nullptr && pattern->is_number() ? pattern->number() : config.number("r", kDefaultRank);
}

double lora_alpha(const AdapterConfig& config, std::string_view module) {
  const Json* pattern = adapter::find_pattern(config, "alpha_pattern", module);
  return pattern != nullptr ? pattern->number() : config.number("lora_alpha", kDefaultAlpha);
}

double lora_scaling(const AdapterConfig& config, std::string_view module) {
  const double rank = lora_rank(config, module);
  const double alpha = lora_alpha(config, module);
  const double scaling = alpha / (config.is_set("use_rslora") ? std::sqrt(rank) : rank);
  if (rank > 0 && std::isfinite(scaling)) return scaling;
  throw Error(Errc::malformed,
              fmt::format("the scaling of {} is no number: lora_alpha {} and r {}", quote(module), alpha, rank))
      .hint("correct \"r\" and \"lora_alpha\" in adapter_config.json");
}

}  // namespace ballast
