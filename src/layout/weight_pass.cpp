#include "layout/weight_pass.hpp"

#include <ballast/error.hpp>
#include <ballast/limits.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "layout/dimension_form.hpp"
#include "layout/dimension_range.hpp"
#include "layout/names_values.hpp"
#include "layout/reshape.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast {
namespace {

using Places = NamePattern::Places;

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

// Where a tensor of the wrong layout is to be permuted, another tensor says what is right.
Tensor permuted(const Tensor& tensor, const WeightRule& rule, const Places& places, const StateDict& tensors) {
  if (!rule.fit) return tensor.permute(rule.order);
  const std::string other = NamePattern(rule.fit->name, {}, NamePattern::Wildcards::no).fill(places);
  const Tensor* found = tensors.find(other);
  if (found == nullptr) throw Error(Errc::mismatch, fmt::format("belongs with {}, which is not there", quote(other)));
  const std::uint64_t wanted = dim_at(*found, 0);
  if (dim_at(tensor, rule.fit->axis) == wanted) return tensor;
  Tensor turned = tensor.permute(rule.order);
  if (dim_at(turned, rule.fit->axis) == wanted) return turned;
  throw Error(Errc::mismatch, fmt::format("{} does not fit {}, which is {}, and would not fit if it were permuted",
                                          to_string(tensor.shape()), quote(other), to_string(found->shape())));
}

Tensor changed(const Tensor& tensor, const WeightRule& rule, const Places& places, const StateDict& tensors) {
  switch (rule.change) {
    case WeightChange::permute: return permuted(tensor, rule, places, tensors);
    case WeightChange::interleave: return names::interleave_halves(tensor, rule.heads);
    case WeightChange::separate: return names::separate_halves(tensor, rule.heads);
    case WeightChange::add: return names::add_number(tensor, rule.number);
    case WeightChange::reshape: return DimensionForm(rule.forms[0]).reshaped(tensor, DimensionForm(rule.forms[1]));
    default: return tensor;
  }
}

}  // namespace

WeightPass::WeightPass(const WeightRule& rule, const StateDict& tensors)
    : rule_(rule), tensors_(tensors), conditions_(rule, tensors), has_conditions_(rule.has_conditions()) {
  if (rule.change == WeightChange::stack || rule.change == WeightChange::unstack) number_ = number_place(rule);
  std::set<std::string, std::less<>> numbers;
  if (!number_.empty()) numbers.insert(number_);
  for (const std::string& name : rule.from) from_.emplace_back(name, numbers, NamePattern::Wildcards::no);
  for (const std::string& name : rule.to) to_.emplace_back(name, numbers, NamePattern::Wildcards::no);
}

StateDict WeightPass::run() {
  for (const auto& [name, tensor] : tensors_) take(name, tensor);
  StateDict result;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].group != nullptr)
      make(*slots_[i].group, result);
    else
      insert(result, slots_[i].name, std::move(slots_[i].tensor));
  }
  return result;
}

void WeightPass::take(std::string_view name, const Tensor& tensor) {
  for (std::size_t i = 0; i < from_.size(); ++i) {
    auto places = from_[i].match(name);
    if (!places) continue;
    if (has_conditions_ && !conditions_.allow(name, *places, to_.front().fill(*places))) continue;
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

void WeightPass::make(const Group& group, StateDict& result) const {
  const std::string& first = group.parts.begin()->second.first;
  try {
    if (rule_.change == WeightChange::unstack) return unstack(group, result);
    if (rule_.change == WeightChange::split) return split(group, result);
    const std::vector<Tensor> parts = complete_parts(group);
    if (rule_.change == WeightChange::concat || rule_.change == WeightChange::stack) check_alike(group);
    Tensor tensor = rule_.change == WeightChange::concat  ? concat(parts, rule_)
                    : rule_.change == WeightChange::stack ? names::stacked(parts, static_cast<std::size_t>(rule_.axis))
                                                          : changed(parts.front(), rule_, group.places, tensors_);
    insert(result, to_.front().fill(group.places), std::move(tensor));
  } catch (const Error& error) {
    throw error.saying(fmt::format("tensor {}: {}", quote(first), error.message())).about(first);
  }
}

std::vector<Tensor> WeightPass::complete_parts(const Group& group) const {
  std::vector<Tensor> parts;
  const bool is_stack = rule_.change == WeightChange::stack;
  const std::uint64_t count = is_stack ? std::max(group.parts.rbegin()->first + 1, rule_.count) : from_.size();
  for (const auto& [number, part] : group.parts) {
    if (number != parts.size()) break;
    parts.push_back(part.second);
  }
  if (parts.size() == count) {
    if (is_stack) check_count(count);
    return parts;
  }
  Places places = group.places;
  if (is_stack) places.emplace(number_, std::to_string(parts.size()));
  const std::string missing = from_[is_stack ? 0 : parts.size()].fill(places);
  throw Error(Errc::mismatch, fmt::format("belongs with {}, which is not there", quote(missing)));
}

// Parts of one tensor have one dtype, and one shape except along the dimension along which they are joined.
void WeightPass::check_alike(const Group& group) const {
  const auto& [name, tensor] = group.parts.begin()->second;
  for (const auto& [number, part] : group.parts) {
    bool is_alike = part.second.dtype() == tensor.dtype() && part.second.rank() == tensor.rank();
    for (std::size_t i = 0; is_alike && i < tensor.rank(); ++i) {
      const bool is_joined = rule_.change == WeightChange::concat && i == rule_.axis;
      is_alike = is_joined || part.second.shape()[i] == tensor.shape()[i];
    }
    if (is_alike) continue;
    const auto shown = [](const Tensor& shape) {
      return fmt::format("{} {}", ballast::name(shape.dtype()), to_string(shape.shape()));
    };
    throw Error(Errc::mismatch, fmt::format("is {}, which does not go with {}, which is {}", shown(tensor),
                                            quote(part.first), shown(part.second)));
  }
}

void WeightPass::check_count(std::uint64_t count) const {
  if (rule_.count == 0 || count == rule_.count) return;
  throw Error(Errc::mismatch, fmt::format("there are {} of such tensors and not {}", count, rule_.count));
}

void WeightPass::split(const Group& group, StateDict& result) const {
  const Tensor& whole = group.parts.begin()->second.second;
  std::uint64_t first = 0;
  const auto counts = shares(dim_at(whole, rule_.axis), rule_.sizes, to_.size());
  for (std::size_t i = 0; i < to_.size(); ++i) {
    insert(result, to_[i].fill(group.places),
           dimension_range(whole, static_cast<std::size_t>(rule_.axis), first, counts[i]));
    first += counts[i];
  }
}

void WeightPass::unstack(const Group& group, StateDict& result) const {
  const Tensor& whole = group.parts.begin()->second.second;
  Slice at(static_cast<std::size_t>(rule_.axis), SliceIndex::range({}, {}));
  at.push_back(SliceIndex::at(0));
  const std::uint64_t count = dim_at(whole, rule_.axis);
  check_count(count);
  if (count > Limits{}.max_tensors) throw Error(Errc::limit, fmt::format("{} tensors in one", count));
  for (std::uint64_t i = 0; i < count; ++i) {
    Places places = group.places;
    places.emplace(number_, std::to_string(i));
    at.back() = SliceIndex::at(static_cast<std::int64_t>(i));
    insert(result, to_.front().fill(places), whole.slice(at));
  }
}

void WeightPass::insert(StateDict& result, std::string_view name, Tensor tensor) const {
  if (!result.insert(name, std::move(tensor)))
    throw Error(Errc::invalid_argument, fmt::format("two tensors would be called {}", quote(name)));
}

}  // namespace ballast
