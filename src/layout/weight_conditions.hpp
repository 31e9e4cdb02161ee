// The conditions of a rule: which other tensors must be there, and which names it leaves alone.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/state_dict.hpp>
#include <ballast/weight_map.hpp>

#include "layout/pattern.hpp"

namespace ballast {

class WeightConditions {
 public:
  // Of a rule that is applied to `tensors`. Cheap for a rule without conditions.
  WeightConditions(const WeightRule& rule, const StateDict& tensors);

  // Whether the rule may change the tensor `name`, whose places are `places`, to one called `result`.
  bool allow(std::string_view name, const NamePattern::Places& places, std::string_view result) const;

 private:
  // What the places that the rule has, too, stand for in the names that a pattern matches.
  struct Seen {
    std::vector<std::string> common;
    std::set<NamePattern::Places> there;
  };
  static bool is_there(const Seen& seen, const NamePattern::Places& places);

  std::vector<Seen> needed_, refused_;
  std::vector<NamePattern> except_, except_result_;
};

// Those of the rule for the way back. A condition about a name that the rule itself takes or gives is turned round.
void turn_conditions_round(const WeightRule& rule, WeightRule& back);

}  // namespace ballast
