#include "peft/scaling.hpp"

#include <re2/re2.h>
#include <ballast/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "peft/targets.hpp"

namespace ballast {
namespace peft {
namespace {

constexpr double kDefault = 8;  // of r, of lora_alpha, and of the alpha of LoHa and LoKr

// A whole number as an integer, as PEFT writes it.
Json whole_or_real(double value) {
  const bool is_whole = std::abs(value) < 1e15 && value == std::floor(value);
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

// Expressions in patterns begin with "^": without it, they would mean every module whose name ends so.
void write_values(AdapterConfig& config, const std::map<std::string, Scale>& scales, double Scale::*member,
                  std::string_view field, std::string_view patterns) {
  std::map<double, std::uint64_t, std::greater<>> counts;
  for (const auto& [module, scale] : scales) ++counts[scale.*member];
  const double usual = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
  Json::Members others;
  for (const auto& [module, scale] : scales) {
    if (scale.*member != usual) others.emplace_back("^" + re2::RE2::QuoteMeta(module), whole_or_real(scale.*member));
  }
  config.fields.set(field, whole_or_real(usual));
  config.fields.set(patterns, std::move(others));
}

double value_at(const AdapterConfig& config, std::string_view module, std::string_view field,
                std::string_view patterns) {
  const Json* value = find_pattern(config, patterns, module);
  if (value == nullptr || value->is_list()) return config.number(field, kDefault);  // AdaLoRA lists the ranks it kept
  if (value->is_number()) return value->number();
  throw Error(Errc::malformed,
              fmt::format("{} has {} for {}, which is not a number", patterns, to_string(*value), quote(module)));
}

}  // namespace

Scale scale_at(const AdapterConfig& config, std::string_view module, std::string_view alpha_field) {
  return {value_at(config, module, "r", "rank_pattern"), value_at(config, module, alpha_field, "alpha_pattern")};
}

double factor_of(const AdapterConfig& config, const Scale& scale) {
  return scale.alpha / (config.is_set("use_rslora") ? std::sqrt(scale.rank) : scale.rank);
}

double scaling_at(const AdapterConfig& config, std::string_view module, std::string_view alpha_field) {
  const Scale scale = scale_at(config, module, alpha_field);
  const double factor = factor_of(config, scale);
  if (scale.rank > 0 && std::isfinite(factor)) return factor;
  throw Error(Errc::malformed, fmt::format("the scaling of {} is not a number: {} is {} and r is {}", quote(module),
                                           alpha_field, scale.alpha, scale.rank))
      .hint(fmt::format("correct \"r\" and \"{}\" in adapter_config.json", alpha_field));
}

void write_scales(AdapterConfig& config, const std::map<std::string, Scale>& scales) {
  if (scales.empty()) return;
  write_values(config, scales, &Scale::rank, "r", "rank_pattern");
  write_values(config, scales, &Scale::alpha, "lora_alpha", "alpha_pattern");
}

}  // namespace peft

double lora_rank(const AdapterConfig& config, std::string_view module) { return peft::scale_at(config, module).rank; }
double lora_alpha(const AdapterConfig& config, std::string_view module) { return peft::scale_at(config, module).alpha; }
double lora_scaling(const AdapterConfig& config, std::string_view module) { return peft::scaling_at(config, module); }

}  // namespace ballast
