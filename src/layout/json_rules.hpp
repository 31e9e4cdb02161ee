// Lists of rules in JSON: {"rules": [...]}. Every error names its rule.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/json.hpp>

#include "core/text.hpp"

namespace ballast {

inline Error in_rule(std::size_t place, const Error& error) {
  return error.saying("rule " + std::to_string(place) + ": " + error.message());
}

// `what` completes the sentence: "a rule".
inline void refuse_unknown_members(const Json& object, std::initializer_list<std::string_view> known,
                                   std::string_view what) {
  for (const auto& [key, value] : object.members()) {
    if (std::ranges::find(known, key) == known.end())
      throw Error(Errc::malformed, quote(key) + " is no member of " + std::string(what));
  }
}

// `read` makes one rule from its JSON.
template <class Read>
auto read_rules(const Json& root, const Read& read) {
  refuse_unknown_members(root, {"rules", "schema", "about"}, "such a file, which is {\"rules\": [...]}");
  std::vector<decltype(read(root))> rules;
  for (const Json& rule : root.at("rules").list()) {
    try {
      rules.push_back(read(rule));
    } catch (const Error& error) {
      throw in_rule(rules.size() + 1, error);
    }
  }
  return rules;
}

}  // namespace ballast
