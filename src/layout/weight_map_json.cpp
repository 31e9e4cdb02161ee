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
#include "layout/dimension_form.hpp"
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
    Word{"reshape", WeightChange::reshape},
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
    case WeightChange::reshape:
      for (const Json& form : json.list()) rule.forms.push_back(form.text());
      break;
  }
}

void check_counts(const WeightRule& rule) {
  const bool may_have_many_from = rule.change == WeightChange::concat,
             may_have_many_to = rule.change == WeightChange::split;
  const std::size_t parts = may_have_many_to ? rule.to.size() : rule.from.size();
  if (rule.change == WeightChange::rename) {
    if (rule.from.size() == rule.to.size()) return;
    throw Error(Errc::invalid_argument,
                "needs as many new names as old ones: only \"concat\" makes one tensor of several, and only \"split\" "
                "several of one");
  }
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

void read_conditions(WeightRule& rule, const Json& json) {
  const auto read = [&](std::string_view key, std::vector<std::string>& names) {
    if (const Json* found = json.find(key)) names = names_of(*found);
  };
  read("if", rule.needed);
  read("unless", rule.refused);
  read("except", rule.except);
  const bool has_one_result = rule.change != WeightChange::concat && rule.change != WeightChange::split &&
                              rule.change != WeightChange::stack && rule.change != WeightChange::unstack;
  if (rule.has_conditions() && !has_one_result)
    throw Error(Errc::invalid_argument, "has a condition, which only rules have that make one tensor of one");
}

// "fit": [2, "{x}.norm.weight"]
void read_fit(WeightRule& rule, const Json& json) {
  if (rule.change != WeightChange::permute)
    throw Error(Errc::invalid_argument, "has \"fit\", which goes with \"permute\"");
  if (json.list().size() != 2) throw Error(Errc::malformed, "\"fit\" is a dimension and a name");
  rule.fit = WeightFit{static_cast<std::size_t>(json.list()[0].count()), json.list()[1].text()};
  if (rule.fit->axis >= rule.order.size())
    throw Error(Errc::invalid_argument, "\"fit\" names a dimension that \"permute\" does not have");
  if (!std::ranges::includes(places_in(rule.from.front()), places_in(rule.fit->name)))
    throw Error(Errc::invalid_argument, "\"fit\" has a place in braces that \"from\" does not have");
}

void read_count(WeightRule& rule, const Json& json) {
  if (rule.change != WeightChange::stack && rule.change != WeightChange::unstack)
    throw Error(Errc::invalid_argument, "has \"count\", which goes with \"stack\" and \"unstack\"");
  rule.count = json.count();
}

void check_forms(const WeightRule& rule) {
  if (rule.change != WeightChange::reshape) return;
  if (rule.forms.size() != 2) throw Error(Errc::malformed, "\"reshape\" has two forms: before and after");
  if (!DimensionForm(rule.forms[0]).has_parts_of(DimensionForm(rule.forms[1])))
    throw Error(Errc::invalid_argument, "\"reshape\" needs the same words and numbers in the same order in both forms");
}

WeightRule weight_rule_from(const Json& json) {
  refuse_unknown_members(
      json, {"from",       "to",       "sizes", "rename",  "about", "concat", "split", "stack",  "unstack", "permute",
             "interleave", "separate", "add",   "reshape", "fit",   "count",  "if",    "unless", "except",  "optional"},
      "a rule");
  WeightRule rule;
  if (const Json* optional = json.find("optional")) rule.is_optional = optional->boolean();
  if (const Json* pattern = json.find("rename")) {
    rule.expression = RenameRule{pattern->text(), json.at("to").text()};
    if (json.find("from") != nullptr) throw Error(Errc::malformed, "has both \"rename\" and \"from\"");
    for (const char* key : {"if", "unless", "except", "fit", "count"}) {
      if (json.find(key) != nullptr)
        throw Error(Errc::malformed, fmt::format("has \"rename\" and \"{}\", which goes with \"from\"", key));
    }
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
  if (const Json* count = json.find("count")) read_count(rule, *count);
  if (const Json* fit = json.find("fit")) read_fit(rule, *fit);
  read_conditions(rule, json);
  check_forms(rule);
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
