#include <ballast/error.hpp>
#include <ballast/weight_map.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/quantization/find_packed.hpp"
#include "checkpoint/quantization/packed_parts.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "layout/json_rules.hpp"
#include "layout/pattern.hpp"
#include "layout/weight_conditions.hpp"
#include "layout/weight_pass.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/same_tensor.hpp"

namespace ballast {
namespace {

// Puts the tensors that a rule made in the place of those that were there. A rule may not change composites, packed
// parts or tensors of unknown ggml types.
void take_changed(Checkpoint& checkpoint, const StateDict& changed) {
  const auto is_same = [&](std::string_view name) {
    const Tensor *now = changed.find(name), *then = checkpoint.find(name);
    return now != nullptr && then != nullptr && is_same_tensor(*now, *then);
  };
  for (const Composite& composite : checkpoint.composites) {
    if (!std::ranges::all_of(composite.parts, is_same)) {
      throw Error(Errc::unsupported, fmt::format("tensor {} is {}, which a map cannot take apart",
                                                 quote(composite.name), composite.layout))
          .hint("make it dense first, with " + mention(Remedy::dense));
    }
  }
  const PackedParts packed(checkpoint);
  for (const auto& [name, tensor] : changed) {
    const Tensor* then = checkpoint.quantization ? checkpoint.find(name) : &tensor;
    if (then == nullptr || !is_same_tensor(*then, tensor)) packed.refuse(name, tensor, "changed by a map");
  }
  for (const auto& [name, unknown] : checkpoint.unknown_ggml) {
    if (!is_same(name)) {
      throw Error(Errc::unsupported,
                  fmt::format("tensor {} is of ggml's type {}, which is unknown", quote(name), unknown.id))
          .hint(leave_it_out());
    }
  }
  replace_tensors(checkpoint, changed, is_same);
}

Checkpoint renamed_by_expression(Checkpoint checkpoint, const WeightRule& rule) {
  const StateDict before = checkpoint.tensors;
  const std::size_t notes = checkpoint.notes.size();
  checkpoint = rename(std::move(checkpoint), {*rule.expression});
  if (rule.is_optional) checkpoint.notes.resize(std::min(notes, checkpoint.notes.size()));
  if (!rule.forth) return checkpoint;
  Checkpoint again;
  again.tensors = checkpoint.tensors;
  again = rename(std::move(again), {*rule.forth});
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (again.tensors[i].name == before[i].name) continue;
    throw Error(Errc::mismatch,
                fmt::format("the name {} did not come from {} by the expression {}", quote(before[i].name),
                            quote(checkpoint.tensors[i].name), quote(rule.forth->pattern)))
        .hint(leave_it_out() + ", or make the expression match less, with ^ and $");
  }
  return checkpoint;
}

const std::set<std::string, std::less<>> kNoNumbers;

Checkpoint renamed_by_pattern(Checkpoint checkpoint, const WeightRule& rule, std::uint64_t& matched) {
  std::vector<NamePattern> from, to;
  for (const std::string& name : rule.from) from.emplace_back(name, kNoNumbers, NamePattern::Wildcards::no);
  for (const std::string& name : rule.to) to.emplace_back(name, kNoNumbers, NamePattern::Wildcards::no);
  const WeightConditions conditions(rule, checkpoint.tensors);
  return rename_names(std::move(checkpoint), [&](std::string_view name) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto places = from[i].match(name);
      if (!places) continue;
      std::string result = to[i].fill(*places);
      if (!conditions.allow(name, *places, result)) continue;
      ++matched;
      return result;
    }
    return std::string(name);
  });
}

// A weight that is kept in parts of other names would be passed over.
void refuse_packed_weights(const Checkpoint& checkpoint, const WeightRule& rule) {
  if (!checkpoint.quantization) return;
  std::vector<NamePattern> from;
  for (const std::string& name : rule.from) from.emplace_back(name, kNoNumbers, NamePattern::Wildcards::no);
  const PackedParts packed(checkpoint);
  const PackedWeights weights(checkpoint);
  for (const PackedWeight& weight : weights.all()) {
    const std::string name = weight.name();
    if (checkpoint.contains(name)) continue;  // a part of that name is refused if the rule changes it
    const auto& [part, tensor] = checkpoint.tensors[weight.number];
    if (std::ranges::any_of(from, [&](const NamePattern& pattern) { return pattern.match(name).has_value(); }))
      packed.refuse(part, tensor, "changed by a map");
  }
}

Checkpoint apply_rule(Checkpoint checkpoint, const WeightRule& rule, std::uint64_t& matched) {
  if (rule.expression) {
    matched = 1;
    return renamed_by_expression(std::move(checkpoint), rule);
  }
  if (rule.change == WeightChange::rename) return renamed_by_pattern(std::move(checkpoint), rule, matched);
  refuse_packed_weights(checkpoint, rule);
  WeightPass pass(rule, checkpoint.tensors);
  StateDict changed = pass.run();
  matched = pass.matched();
  if (matched != 0) take_changed(checkpoint, changed);
  return checkpoint;
}

WeightChange opposite(WeightChange change) {
  switch (change) {
    case WeightChange::concat: return WeightChange::split;
    case WeightChange::split: return WeightChange::concat;
    case WeightChange::stack: return WeightChange::unstack;
    case WeightChange::unstack: return WeightChange::stack;
    case WeightChange::interleave: return WeightChange::separate;
    case WeightChange::separate: return WeightChange::interleave;
    default: return change;
  }
}

WeightRule turned_round(const WeightRule& rule) {
  WeightRule back = rule;
  if (rule.expression) {
    back.expression = reversed(*rule.expression);
    back.forth = rule.expression;
    if (!back.expression) {
      throw Error(Errc::unsupported,
                  fmt::format("the expression {} cannot be turned round", quote(rule.expression->pattern)))
          .hint("use \"from\" and \"to\" with places such as {x}, or plain text with groups that \"to\" has, too");
    }
    return back;
  }
  back.change = opposite(rule.change);
  std::swap(back.from, back.to);
  back.number = -rule.number;
  std::ranges::reverse(back.forms);
  turn_conditions_round(rule, back);
  if (rule.change == WeightChange::permute) {
    if (rule.fit && rule.fit->axis < rule.order.size()) back.fit->axis = rule.order[rule.fit->axis];
    for (std::size_t i = 0; i < rule.order.size(); ++i) {
      if (rule.order[i] < rule.order.size()) back.order[rule.order[i]] = i;
    }
  }
  return back;
}

}  // namespace

WeightMap WeightMap::reversed() const {
  WeightMap back;
  for (std::size_t i = rules.size(); i-- > 0;) {
    try {
      back.rules.push_back(turned_round(rules[i]));
    } catch (const Error& error) {
      throw in_rule(rules[i].place, error);
    }
  }
  return back;
}

Checkpoint apply(Checkpoint checkpoint, const WeightMap& map) {
  for (const WeightRule& rule : map.rules) {
    std::uint64_t matched = 0;
    try {
      checkpoint = apply_rule(std::move(checkpoint), rule, matched);
    } catch (const Error& error) {
      throw in_rule(rule.place, error);
    }
    if (matched == 0 && !rule.is_optional) {
      checkpoint.notes.push_back(
          {checkpoint.target, fmt::format("rule {} of the map matches no tensor", rule.place), Note::Kind::remark});
    }
  }
  return checkpoint;
}

}  // namespace ballast
