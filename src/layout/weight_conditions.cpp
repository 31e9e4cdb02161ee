#include "layout/weight_conditions.hpp"

#include <algorithm>
#include <utility>

namespace ballast {
namespace {

using Places = NamePattern::Places;

std::vector<NamePattern> patterns_of(const std::vector<std::string>& names) {
  std::vector<NamePattern> patterns;
  for (const std::string& name : names)
    patterns.emplace_back(name, std::set<std::string, std::less<>>{}, NamePattern::Wildcards::no);
  return patterns;
}

bool any_matches(const std::vector<NamePattern>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [&](const NamePattern& pattern) { return pattern.match(name).has_value(); });
}

Places only(const std::vector<std::string>& words, const Places& places) {
  Places some;
  for (const std::string& word : words) some.emplace(word, places.find(word)->second);
  return some;
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

WeightConditions::WeightConditions(const WeightRule& rule, const StateDict& tensors)
    : except_(patterns_of(rule.except)), except_result_(patterns_of(rule.except_result)) {
  if (rule.needed.empty() && rule.refused.empty()) return;
  const auto own = places_in(rule.from.front());
  const auto look = [&](const std::vector<std::string>& names) {
    std::vector<Seen> all;
    for (const NamePattern& pattern : patterns_of(names)) {
      Seen seen;
      std::ranges::set_intersection(own, places_in(pattern.text()), std::back_inserter(seen.common));
      for (const auto& [name, tensor] : tensors) {
        if (const auto places = pattern.match(name)) seen.there.insert(only(seen.common, *places));
      }
      all.push_back(std::move(seen));
    }
    return all;
  };
  needed_ = look(rule.needed);
  refused_ = look(rule.refused);
}

bool WeightConditions::is_there(const Seen& seen, const Places& places) {
  return seen.there.contains(only(seen.common, places));
}

bool WeightConditions::allow(std::string_view name, const Places& places, std::string_view result) const {
  const auto there = [&](const Seen& seen) { return is_there(seen, places); };
  return std::ranges::all_of(needed_, there) && std::ranges::none_of(refused_, there) && !any_matches(except_, name) &&
         !any_matches(except_result_, result);
}

void turn_conditions_round(const WeightRule& rule, WeightRule& back) {
  back.needed.clear();
  back.refused.clear();
  for (const std::string& name : rule.needed) (is_among(rule.from, name) ? back.refused : back.needed).push_back(name);
  for (const std::string& name : rule.refused) (is_among(rule.to, name) ? back.needed : back.refused).push_back(name);
  std::swap(back.except, back.except_result);
}

}  // namespace ballast
