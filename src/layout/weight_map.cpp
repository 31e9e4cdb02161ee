#include <ballast/error.hpp>
#include <ballast/limits.hpp>
#include <ballast/weight_map.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "layout/dimension_range.hpp"
#include "layout/json_rules.hpp"
#include "layout/names_values.hpp"
#include "layout/pattern.hpp"
#include "layout/reshape.hpp"
#include "tensor/checkpoint_parts.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast {
namespace {

using Places = NamePattern::Places;
using Named = std::pair<std::string, Tensor>;

// The placeholder that one side has and the other does not have.
std::string number_place(const WeightRule& rule) {
  const auto from = places_in(rule.from.front()), to = places_in(rule.to.front());
  for (const auto& places : {from, to}) {
    for (const std::string& place : places) {
      if (from.contains(place) != to.contains(place)) return place;
    }
  }
  return {};
}

std::uint64_t dim_at(const Tensor& tensor, std::uint64_t axis) {
  if (axis >= tensor.rank()) {
    throw Error(Errc::mismatch, fmt::format("there is no dimension {} in {}", axis, to_string(tensor.shape())));
  }
  return tensor.shape()[static_cast<std::size_t>(axis)];
}

// How much of `total` each part gets, in proportion to `sizes`.
std::vector<std::uint64_t> shares(std::uint64_t total, std::vector<std::uint64_t> sizes, std::size_t parts) {
  if (sizes.empty()) sizes.assign(parts, 1);
  std::uint64_t sum = 0;
  for (const std::uint64_t size : sizes) {
    if (__builtin_add_overflow(sum, size, &sum)) sum = 0;
    if (sum == 0) break;
  }
  if (sum == 0 || total % sum != 0) {
    throw Error(Errc::mismatch,
                fmt::format("a dimension of {} cannot be cut into {}", total,
                            sizes == std::vector<std::uint64_t>(parts, 1) ? fmt::format("{} equal parts", parts)
                                                                          : fmt::format("parts of these sizes")))
        .hint("say what the parts are to each other with \"sizes\", such as [4, 1, 1]");
  }
  for (std::uint64_t& size : sizes) size *= total / sum;
  return sizes;
}

Tensor concat(const std::vector<Tensor>& parts, const WeightRule& rule) {
  Tensor whole = concatenated(parts, static_cast<std::size_t>(rule.axis));
  const auto expected = shares(dim_at(whole, rule.axis), rule.sizes, parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (dim_at(parts[i], rule.axis) != expected[i]) {
      throw Error(Errc::mismatch, fmt::format("part {} has {} of {}, which is {}", i + 1, dim_at(parts[i], rule.axis),
                                              dim_at(whole, rule.axis),
                                              rule.sizes.empty() ? "no equal part" : "not what \"sizes\" says"))
          .hint("say what the parts are to each other with \"sizes\", such as [4, 1, 1]");
    }
  }
  return whole;
}

Tensor changed(const Tensor& tensor, const WeightRule& rule) {
  switch (rule.change) {
    case WeightChange::permute: return tensor.permute(rule.order);
    case WeightChange::interleave: return names::interleave_halves(tensor, rule.heads);
    case WeightChange::separate: return names::separate_halves(tensor, rule.heads);
    case WeightChange::add: return names::add_number(tensor, rule.number);
    default: return tensor;
  }
}

// Applies one rule to all tensors. If several tensors become one, it stands where the first of them stood.
class Pass {
 public:
  explicit Pass(const WeightRule& rule) : rule_(rule) {
    if (rule.change == WeightChange::stack || rule.change == WeightChange::unstack) number_ = number_place(rule);
    std::set<std::string, std::less<>> numbers;
    if (!number_.empty()) numbers.insert(number_);
    for (const std::string& name : rule.from) from_.emplace_back(name, numbers, NamePattern::Wildcards::no);
    for (const std::string& name : rule.to) to_.emplace_back(name, numbers, NamePattern::Wildcards::no);
  }

  std::uint64_t matched() const noexcept { return groups_.size(); }

  StateDict run(const StateDict& tensors) {
    for (const auto& [name, tensor] : tensors) take(name, tensor);
    StateDict result;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].group != nullptr)
        make(*slots_[i].group, result);
      else
        insert(result, slots_[i].name, std::move(slots_[i].tensor));
    }
    return result;
  }

 private:
  struct Group {
    Places places;                         // without the number
    std::map<std::uint64_t, Named> parts;  // by the position in `from`, or by the number
  };
  struct Slot {
    std::string_view name;
    Tensor tensor;
    const Group* group = nullptr;
  };

  void take(std::string_view name, const Tensor& tensor) {
    for (std::size_t i = 0; i < from_.size(); ++i) {
      auto places = from_[i].match(name);
      if (!places) continue;
      std::uint64_t part = i;
      if (rule_.change == WeightChange::stack) {
        part = std::stoull(places->find(number_)->second);
        places->erase(number_);
      }
      const auto [group, is_new] = groups_.try_emplace(*places);
      if (is_new) {
        group->second.places = std::move(*places);
        slots_.push_back({{}, {}, &group->second});
      }
      const auto [there, is_first] = group->second.parts.try_emplace(part, name, tensor);
      if (!is_first) {
        throw Error(Errc::mismatch,
                    fmt::format("{} and {} are the same part of one tensor", quote(there->second.first), quote(name)));
      }
      return;
    }
    slots_.push_back({name, tensor, nullptr});
  }

  void make(const Group& group, StateDict& result) const {
    const std::string& first = group.parts.begin()->second.first;
    try {
      if (rule_.change == WeightChange::unstack) return unstack(group, result);
      if (rule_.change == WeightChange::split) return split(group, result);
      const std::vector<Tensor> parts = complete_parts(group);
      Tensor tensor = rule_.change == WeightChange::concat ? concat(parts, rule_)
                      : rule_.change == WeightChange::stack
                          ? names::stacked(parts, static_cast<std::size_t>(rule_.axis))
                          : changed(parts.front(), rule_);
      insert(result, to_.front().fill(group.places), std::move(tensor));
    } catch (const Error& error) {
      throw error.saying(fmt::format("tensor {}: {}", quote(first), error.message())).about(first);
    }
  }

  std::vector<Tensor> complete_parts(const Group& group) const {
    std::vector<Tensor> parts;
    const bool is_stack = rule_.change == WeightChange::stack;
    const std::uint64_t count = is_stack ? group.parts.rbegin()->first + 1 : from_.size();
    for (const auto& [number, part] : group.parts) {
      if (number != parts.size()) break;
      parts.push_back(part.second);
    }
    if (parts.size() == count) return parts;
    Places places = group.places;
    if (is_stack) places.emplace(number_, std::to_string(parts.size()));
    const std::string missing = from_[is_stack ? 0 : parts.size()].fill(places);
    throw Error(Errc::mismatch, fmt::format("belongs with {}, which is not there", quote(missing)));
  }

  void split(const Group& group, StateDict& result) const {
    const Tensor& whole = group.parts.begin()->second.second;
    std::uint64_t first = 0;
    const auto counts = shares(dim_at(whole, rule_.axis), rule_.sizes, to_.size());
    for (std::size_t i = 0; i < to_.size(); ++i) {
      insert(result, to_[i].fill(group.places),
             dimension_range(whole, static_cast<std::size_t>(rule_.axis), first, counts[i]));
      first += counts[i];
    }
  }

  void unstack(const Group& group, StateDict& result) const {
    const Tensor& whole = group.parts.begin()->second.second;
    Slice at(static_cast<std::size_t>(rule_.axis), SliceIndex::range({}, {}));
    at.push_back(SliceIndex::at(0));
    const std::uint64_t count = dim_at(whole, rule_.axis);
    if (count > Limits{}.max_tensors) throw Error(Errc::limit, fmt::format("{} tensors in one", count));
    for (std::uint64_t i = 0; i < count; ++i) {
      Places places = group.places;
      places.emplace(number_, std::to_string(i));
      at.back() = SliceIndex::at(static_cast<std::int64_t>(i));
      insert(result, to_.front().fill(places), whole.slice(at));
    }
  }

  static void insert(StateDict& result, std::string_view name, Tensor tensor) {
    if (!result.insert(name, std::move(tensor)))
      throw Error(Errc::invalid_argument, fmt::format("two tensors would be called {}", quote(name)));
  }

  const WeightRule& rule_;
  std::vector<NamePattern> from_, to_;
  std::string number_;
  std::map<Places, Group> groups_;
  std::vector<Slot> slots_;
};

// Puts the tensors that a rule made in the place of those that were there. A rule may not change composites, packed
// parts or tensors of unknown ggml types.
void take_changed(Checkpoint& checkpoint, const StateDict& changed) {
  const auto is_same = [&](std::string_view name) {
    const Tensor *now = changed.find(name), *then = checkpoint.find(name);
    return now != nullptr && then != nullptr && now->storage() == then->storage() && now->shape() == then->shape();
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
    if (then == nullptr || then->storage() != tensor.storage()) packed.refuse(name, tensor, "changed by a map");
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
  checkpoint = rename(std::move(checkpoint), {*rule.expression});
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

Checkpoint renamed_by_pattern(Checkpoint checkpoint, const WeightRule& rule, std::uint64_t& matched) {
  const NamePattern from(rule.from.front(), {}, NamePattern::Wildcards::no);
  const NamePattern to(rule.to.front(), {}, NamePattern::Wildcards::no);
  for (const auto& [name, tensor] : checkpoint) matched += from.match(name) ? 1u : 0u;
  return rename_names(std::move(checkpoint), [&](std::string_view name) {
    const auto places = from.match(name);
    return places ? to.fill(*places) : std::string(name);
  });
}

Checkpoint apply_rule(Checkpoint checkpoint, const WeightRule& rule, std::uint64_t& matched) {
  if (rule.expression) {
    matched = 1;
    return renamed_by_expression(std::move(checkpoint), rule);
  }
  if (rule.change == WeightChange::rename) return renamed_by_pattern(std::move(checkpoint), rule, matched);
  Pass pass(rule);
  take_changed(checkpoint, pass.run(checkpoint.tensors));
  matched = pass.matched();
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
  if (rule.change == WeightChange::permute) {
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
    if (matched == 0) {
      checkpoint.notes.push_back(
          {checkpoint.target, fmt::format("rule {} of the map matches no tensor", rule.place), Note::Kind::remark});
    }
  }
  return checkpoint;
}

}  // namespace ballast
