// {"rules": [{"match": "*.q_proj.weight", "split": "rows", "unit": 128}, ...]}
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/limits.hpp>
#include <ballast/rank_plan.hpp>

#include <array>
#include <utility>

#include "core/text.hpp"
#include "io/section.hpp"
#include "layout/json_rules.hpp"

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

RankRule rank_rule_from(const Json& json) {
  refuse_unknown_members(json, {"match", "split", "unit", "about"}, "a rule");
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

std::vector<RankRule> parse_rank_rules(std::string_view json) { return read_rules(Json::parse(json), rank_rule_from); }

std::vector<RankRule> load_rank_rules(const std::string& path) try {
  return parse_rank_rules(io::read_text_file(path, Limits{}.max_index_bytes)->view());
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast
