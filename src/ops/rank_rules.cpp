// {"rules": [{"match": "*.q_proj.weight", "split": "rows", "unit": 128}, ...]}
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/limits.hpp>
#include <ballast/rank_plan.hpp>

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/text.hpp"
#include "io/byte_source.hpp"

namespace ballast {
namespace {

constexpr std::array kSplits = {std::pair{RankSplit::replicated, "replicated"}, std::pair{RankSplit::rows, "rows"},
                                std::pair{RankSplit::columns, "columns"}, std::pair{RankSplit::expert, "expert"}};

RankSplit split_from(const std::string& text) {
  for (const auto& [split, word] : kSplits) {
    if (text == word) return split;
  }
  throw Error(Errc::malformed, quote(text) + " is no split").hint("there are replicated, rows, columns and expert");
}

RankRule rule_from(const Json& json) {
  for (const auto& [key, value] : json.members()) {
    if (key != "match" && key != "split" && key != "unit" && key != "about")
      throw Error(Errc::malformed, quote(key) + " is no member of a rule");
  }
  RankRule rule{json.at("match").text(), split_from(json.at("split").text())};
  if (const Json* unit = json.find("unit")) rule.unit = unit->count();
  if (rule.unit == 0) throw Error(Errc::malformed, "\"unit\" is at least 1");
  return rule;
}

}  // namespace

std::string_view name(RankSplit split) noexcept {
  for (const auto& [known, word] : kSplits) {
    if (known == split) return word;
  }
  return {};
}

std::vector<RankRule> parse_rank_rules(std::string_view json) {
  const Json root = Json::parse(json);
  std::vector<RankRule> rules;
  for (const Json& rule : root.at("rules").list()) {
    try {
      rules.push_back(rule_from(rule));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("rule {}: {}", rules.size() + 1, error.message())).hint(error.hint());
    }
  }
  return rules;
}

std::vector<RankRule> load_rank_rules(const std::string& path) try {
  return parse_rank_rules(io::read_text_file(path, Limits{}.max_index_bytes)->view());
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast
