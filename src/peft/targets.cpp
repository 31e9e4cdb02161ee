#include "peft/targets.hpp"

#include <ballast/error.hpp>

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/text.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

// Python's expressions are more than RE2's. Those that only Python understands are refused, not guessed.
std::unique_ptr<re2::RE2> compiled(const std::string& pattern, std::string_view key, std::string_view field) {
  auto expression = std::make_unique<re2::RE2>(pattern, re2::RE2::Quiet);
  if (expression->ok()) return expression;
  throw Error(Errc::unsupported, "the expression " + quote(key) + " of " + quote(field) + ": " + expression->error())
      .hint("write it without look-around and back-references");
}

// Most keys are plain characters, with a dot for any character and "\\." for a dot: they need no compiled expression.
// Empty if the key is more than that.
std::optional<bool> matches_plainly(std::string_view key, std::string_view module) {
  const bool is_anchored = key.starts_with('^');
  if (is_anchored) key.remove_prefix(1);
  std::string wanted;  // with a zero for any character
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto is_plain = [](char c) {
      return c == '_' || c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    };
    const bool is_escaped =
        key[i] == '\\' && i + 1 < key.size() && std::ispunct(static_cast<unsigned char>(key[i + 1])) != 0;
    if (!is_escaped && key[i] != '.' && !is_plain(key[i])) return std::nullopt;
    wanted += is_escaped ? key[++i] : key[i] == '.' ? '\0' : key[i];
  }
  if (module.size() < wanted.size()) return false;
  const std::size_t begin = module.size() - wanted.size();
  if (begin != 0 && (is_anchored || module[begin - 1] != '.')) return false;
  return std::ranges::equal(wanted, module.substr(begin), [](char a, char b) { return a == '\0' || a == b; });
}

}  // namespace

bool ends_with_name(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  return name.size() == ending.size() || name[name.size() - ending.size() - 1] == '.';
}

const Json* find_pattern(const AdapterConfig& config, std::string_view field, std::string_view module) {
  const Json* patterns = config.find(field);
  if (patterns == nullptr) return nullptr;
  if (!patterns->is_object()) throw Error(Errc::malformed, "the field " + quote(field) + " must be a JSON object");
  for (const auto& [key, value] : patterns->members()) {
    const auto plainly = matches_plainly(key, module);
    if (plainly ? *plainly : re2::RE2::FullMatch(module, *compiled("(.*\\.)?(" + key + ")", key, field))) return &value;
  }
  return nullptr;
}

ModulePattern::ModulePattern(const AdapterConfig& config, std::string_view field) {
  const Json* value = config.find(field);
  if (value != nullptr && value->is_text()) {
    expression_ = compiled(value->text(), value->text(), field);
  } else {
    ends_ = config.words(field);
  }
}

bool ModulePattern::matches(std::string_view module) const {
  if (expression_ != nullptr) return re2::RE2::FullMatch(module, *expression_);
  return std::ranges::any_of(ends_, [&](const std::string& end) { return ends_with_name(module, end); });
}

TargetModules::TargetModules(const AdapterConfig& config)
    : layers_(config.words("layers_to_transform")), layer_patterns_(config.words("layers_pattern")) {
  const Json* value = config.find("target_modules");
  is_known_ = value != nullptr && !(*value == Json("all-linear"));
  if (!is_known_) return;
  targets_ = ModulePattern(config, "target_modules");
  excluded_ = ModulePattern(config, "exclude_modules");
}

bool TargetModules::contains(std::string_view module) const {
  return targets_.matches(module) && !excluded_.matches(module) && is_transformed(module);
}

// layers_to_transform holds for a module that lies in one of the layers: behind "PATTERN.NUMBER.", or behind the first
// number if there is no pattern.
bool TargetModules::is_transformed(std::string_view module) const {
  if (layers_.empty()) return true;
  std::string_view before;
  while (!module.empty()) {
    const std::string_view segment = take_segment(module);
    const bool is_layer =
        layer_patterns_.empty() || std::ranges::find(layer_patterns_, before) != layer_patterns_.end();
    if (is_layer && number_in(segment).has_value()) return std::ranges::find(layers_, segment) != layers_.end();
    before = segment;
  }
  return false;
}

bool is_saved_whole(const std::vector<std::string>& modules_to_save, std::string_view module) {
  return std::ranges::any_of(modules_to_save, [&](const std::string& end) { return module.ends_with(end); });
}

}  // namespace ballast::peft
