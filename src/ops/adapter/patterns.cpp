#include "ops/adapter/patterns.hpp"

#include <re2/re2.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/text.hpp"

namespace ballast::adapter {
namespace {

// A key of plain characters, as most are, without a compiled expression: a dot is any character, "\\." is a dot.
// Nothing where it is more than that.
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

bool matches(const std::string& key, std::string_view module, std::string_view field) {
  if (const auto plainly = matches_plainly(key, module)) return *plainly;
  const re2::RE2 expression("(.*\\.)?(" + key + ")", re2::RE2::Quiet);
  if (expression.ok()) return re2::RE2::FullMatch(module, expression);
  throw Error(Errc::unsupported, "the expression " + quote(key) + " of " + quote(field) + ": " + expression.error())
      .hint("write it without look-around and back-references");
}

}  // namespace

const Json* find_pattern(const AdapterConfig& config, std::string_view field, std::string_view module) {
  const Json* patterns = config.find(field);
  if (patterns == nullptr) return nullptr;
  if (!patterns->is_object()) throw Error(Errc::malformed, "the field " + quote(field) + " must be a JSON object");
  for (const auto& [key, value] : patterns->members()) {
    if (matches(key, module, field)) return &value;
  }
  return nullptr;
}

}  // namespace ballast::adapter
