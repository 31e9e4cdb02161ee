#include "ops/merge/settings.hpp"

#include <fmt/format.h>
#include <re2/re2.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "ops/adapter/patterns.hpp"

namespace ballast::merging {
namespace {

// Python's re is larger than RE2: what it alone understands is refused, not guessed.
bool is_match(const std::string& pattern, std::string_view text) {
  const re2::RE2 expression(pattern, re2::RE2::Quiet);
  if (!expression.ok())
    throw Error(Errc::unsupported, fmt::format("the expression {} of the adapter's configuration cannot be used: {}",
                                               quote(pattern), expression.error()));
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), expression);
}

bool ends_with_module(std::string_view module, std::string_view ending) {
  if (module == ending) return true;
  return module.size() > ending.size() && module.ends_with(ending) && module[module.size() - ending.size() - 1] == '.';
}

// Adds the name of the field to what its value complains about.
template <class Read>
auto reading(std::string_view key, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("the field {} of the adapter's configuration {}", quote(key), error.message()));
  }
}

double finite(std::string_view key, double value) {
  if (!std::isfinite(value))
    throw Error(Errc::malformed, fmt::format("the field {} of the adapter's configuration is {}", quote(key), value));
  return value;
}

}  // namespace

const Json* Settings::find(std::string_view key) const { return config_.find(key); }

const Json& Settings::at(std::string_view key) const {
  if (const Json* field = find(key)) return *field;
  throw Error(Errc::malformed, fmt::format("the adapter's configuration has no field {}", quote(key)));
}

bool Settings::flag(std::string_view key, bool otherwise) const {
  const Json* field = find(key);
  return field == nullptr ? otherwise : reading(key, [&] { return field->boolean(); });
}

double Settings::number(std::string_view key) const {
  return finite(key, reading(key, [&] { return at(key).number(); }));
}

double Settings::number(std::string_view key, double otherwise) const {
  return find(key) == nullptr ? otherwise : number(key);
}

std::uint64_t Settings::count(std::string_view key) const {
  return reading(key, [&] { return at(key).count(); });
}

std::uint64_t Settings::count(std::string_view key, std::uint64_t otherwise) const {
  return find(key) == nullptr ? otherwise : count(key);
}

std::string Settings::text(std::string_view key, std::string_view otherwise) const {
  const Json* field = find(key);
  return field == nullptr ? std::string(otherwise) : reading(key, [&] { return field->text(); });
}

std::vector<std::string> Settings::names(std::string_view key) const {
  const Json* field = find(key);
  if (field == nullptr) return {};
  if (field->is_text()) return {field->text()};
  return reading(key, [&] {
    std::vector<std::string> names;
    for (const Json& name : field->list()) names.push_back(name.text());
    return names;
  });
}

const Json& Settings::at_for(std::string_view module, std::string_view key, std::string_view patterns) const {
  const Json* pattern = adapter::find_pattern(config_, patterns, module);
  return pattern != nullptr ? *pattern : at(key);
}

double Settings::number_for(std::string_view module, std::string_view key, std::string_view patterns) const {
  return finite(key, reading(key, [&] { return at_for(module, key, patterns).number(); }));
}

std::uint64_t Settings::count_for(std::string_view module, std::string_view key, std::string_view patterns) const {
  return reading(key, [&] { return at_for(module, key, patterns).count(); });
}

bool Settings::matches(std::string_view key, std::string_view module) const {
  const Json* field = find(key);
  if (field == nullptr) return false;
  if (field->is_text()) return is_match(field->text(), module);
  return std::ranges::any_of(names(key), [&](const std::string& name) { return ends_with_module(module, name); });
}

double lora_scaling(const Settings& settings, std::string_view module, std::string_view alpha_key) {
  const double alpha = settings.number_for(module, alpha_key, "alpha_pattern");
  const auto rank = static_cast<double>(settings.count_for(module, "r", "rank_pattern"));
  const double scaling = alpha / (settings.flag("use_rslora") ? std::sqrt(rank) : rank);
  if (std::isfinite(scaling) && scaling != 0) return scaling;
  throw Error(Errc::mismatch, fmt::format("the adapter scales the module {} by {}: {} is {} and its rank {}",
                                          quote(module), scaling, alpha_key, alpha, rank))
      .hint("look at lora_alpha, r and the patterns in adapter_config.json");
}

}  // namespace ballast::merging
