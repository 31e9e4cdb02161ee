// The factor of a LoRA at a module. PEFT looks for the first key of a pattern with
// re.match(r"(.*\.)?({key})$", module), so that "q_proj" and "layers.0.self_attn.q_proj" both mean modules by their
// ends.
#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <re2/re2.h>

#include <cmath>

#include "core/text.hpp"

namespace ballast {
namespace {

// What PEFT takes where the configuration does not say.
constexpr double kDefaultRank = 8, kDefaultAlpha = 8;

const Json* find_pattern(const AdapterConfig& config, std::string_view field, std::string_view module) {
  const Json* patterns = config.find(field);
  if (patterns == nullptr) return nullptr;
  if (!patterns->is_object()) throw Error(Errc::malformed, "the field " + quote(field) + " must be a JSON object");
  for (const auto& [key, value] : patterns->members()) {
    const re2::RE2 expression("(.*\\.)?(" + key + ")", re2::RE2::Quiet);
    if (!expression.ok()) {
      throw Error(Errc::unsupported, "the expression " + quote(key) + " of " + quote(field) + ": " + expression.error())
          .hint("write it without look-around and back-references");
    }
    if (re2::RE2::FullMatch(module, expression)) return &value;
  }
  return nullptr;
}

}  // namespace

double lora_rank(const AdapterConfig& config, std::string_view module) {
  const Json* pattern = find_pattern(config, "rank_pattern", module);
  return pattern != nullptr && pattern->is_number() ? pattern->number() : config.number("r", kDefaultRank);
}

double lora_alpha(const AdapterConfig& config, std::string_view module) {
  const Json* pattern = find_pattern(config, "alpha_pattern", module);
  return pattern != nullptr ? pattern->number() : config.number("lora_alpha", kDefaultAlpha);
}

double lora_scaling(const AdapterConfig& config, std::string_view module) {
  const double rank = lora_rank(config, module);
  const double alpha = lora_alpha(config, module);
  const double scaling = alpha / (config.is_set("use_rslora") ? std::sqrt(rank) : rank);
  if (rank > 0 && std::isfinite(scaling)) return scaling;
  throw Error(Errc::malformed, "the scaling of " + quote(module) + " is no number: lora_alpha " +
                                   to_string(Json(alpha)) + " and r " + to_string(Json(rank)))
      .hint("correct \"r\" and \"lora_alpha\" in adapter_config.json");
}

}  // namespace ballast
