// {"rules": [{"from": "{x}.c_attn.weight", "to": ["{x}.q.weight", "{x}.k.weight"], "split": 1}, ...]}
#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/limits.hpp>
#include <ballast/weight_map.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/text.hpp"
#include "io/section.hpp"
#include "layout/json_rules.hpp"
#include "layout/pattern.hpp"

namespace ballast {
namespace {

struct Word {
  std::string_view key;  // the key of the one member that says what is done
  WeightChange change;
};
constexpr std::array kWords = {
    Word{"concat", WeightChange::concat},     Word{"split", WeightChange::split},
    Word{"stack", WeightChange::stack},       Word{"unstack", WeightChange::unstack},
    Word{"permute", WeightChange::permute},   Word{"interleave", WeightChange::interleave},
    Word{"separate", WeightChange::separate}, Word{"add", WeightChange::add},
};

std::vector<std::string> names_of(const Json& json) {
  if (json.is_text()) return {json.text()};
  std::vector<std::string> names;
  for (const Json& name : json.list()) names.push_back(name.text());
  if (names.empty()) throw Error(Errc::malformed, "a list of names is empty");
  return names;
}

void read_argument(WeightRule& rule, const Json& json) {
  switch (rule.change) {
    case WeightChange::rename: break;
    case WeightChange::concat:
    case WeightChange::split:
    case WeightChange::stack:
    case WeightChange::unstack: rule.axis = json.count(); break;
    case WeightChange::permute:
      for (const Json& dim : json.list()) rule.order.push_back(static_cast<std::size_t>(dim.count()));
      break;
    case WeightChange::interleave:
    case WeightChange::separate: rule.heads = json.count(); break;
    case WeightChange::add: rule.number = json.number(); break;
  }
}

void check_counts(const WeightRule& rule) {
  const bool may_have_many_from = rule.change == WeightChange::concat,
             may_have_many_to = rule.change == WeightChange::split;
  const std::size_t parts = may_have_many_to ? rule.to.size() : rule.from.size();
  if ((rule.from.size() > 1 && !may_have_many_from) || (rule.to.size() > 1 && !may_have_many_to))
    throw Error(Errc::invalid_argument, "only \"concat\" takes several names, and only \"split\" gives them");
  if ((may_have_many_from || may_have_many_to) && parts < 2)
    throw Error(Errc::invalid_argument, "needs a list of at least two names for its parts");
  if (!rule.sizes.empty() && (rule.sizes.size() != parts || std::ranges::count(rule.sizes, 0u) != 0))
    throw Error(Errc::invalid_argument, "\"sizes\" has one number of at least 1 for each part");
}

// A word in braces on one side must be on the other side too, except the number of stacked tensors.
void check_places(const WeightRule& rule) {
  const bool is_stack = rule.change == WeightChange::stack, is_unstack = rule.change == WeightChange::unstack;
  const auto common = places_in(is_stack ? rule.to.front() : rule.from.front());
  const auto check = [&](const std::string& name, std::size_t more) {
    const auto places = places_in(name);
    const bool has_all = std::ranges::includes(places, common);
    if (has_all && places.size() == common.size() + more) return;
    if (more == 0) {
      throw Error(Errc::invalid_argument,
                  fmt::format("{} has other places in braces than the other names", quote(name)));
    }
    throw Error(Errc::invalid_argument,
                fmt::format("{} needs one more place in braces than its other side: the number", quote(name)));
  };
  for (const std::string& name : rule.from) check(name, is_stack ? 1 : 0);
  for (const std::string& name : rule.to) check(name, is_unstack ? 1 : 0);
}

WeightRule weight_rule_from(const Json& json) {
  refuse_unknown_members(json,
                         {"from", "to", "sizes", "rename", "about", "concat", "split", "stack", "unstack", "permute",
                          "interleave", "separate", "add"},
                         "a rule");
  WeightRule rule;
  if (const Json* pattern = json.find("rename")) {
    rule.expression = RenameRule{pattern->text(), json.at("to").text()};
    if (json.find("from") != nullptr) throw Error(Errc::malformed, "has both \"rename\" and \"from\"");
    return rule;
  }
  for (const Word& word : kWords) {
    const Json* argument = json.find(word.key);
    if (argument == nullptr) continue;
    if (rule.change != WeightChange::rename) throw Error(Errc::malformed, "does two things: write two rules");
    rule.change = word.change;
    read_argument(rule, *argument);
  }
  rule.from = names_of(json.at("from"));
  const Json* to = json.find("to");
  rule.to = to != nullptr ? names_of(*to) : rule.from;
  if (const Json* sizes = json.find("sizes")) {
    for (const Json& size : sizes->list()) rule.sizes.push_back(size.count());
  }
  check_counts(rule);
  check_places(rule);
  return rule;
}

}  // namespace

WeightMap WeightMap::parse(std::string_view text) {
  WeightMap map{read_rules(Json::parse(text), weight_rule_from)};
  for (std::size_t i = 0; i < map.rules.size(); ++i) map.rules[i].place = i + 1;
  return map;
}

WeightMap WeightMap::load(const std::string& path) try {
  return parse(io::read_text_file(path, Limits{}.max_index_bytes)->view());
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast
