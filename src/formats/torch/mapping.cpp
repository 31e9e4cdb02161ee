#include "formats/torch/mapping.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "formats/torch/calls.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

// OrderedDict(dict(OrderedDict(…))): deeper copies are not honest, and may go round in a circle.
constexpr std::size_t kDeepestCopy = 16;

bool is_known_mapping(const Callee& callee) {
  return callee.is("builtins", "dict") || callee.is("types", "MappingProxyType") ||
         callee.is_one_of("collections", {"OrderedDict", "Counter", "defaultdict"});
}

// A class of somebody's own: EasyDict, FrozenDict, a subclass of OrderedDict. This is not certain, so what the class
// was given must look like a mapping.
bool is_called_mapping(const Callee& callee) {
  constexpr std::string_view kEnding = "dict";
  if (callee.name.size() < kEnding.size()) return false;
  const std::string_view ending = callee.name.substr(callee.name.size() - kEnding.size());
  return std::ranges::equal(ending, kEnding, [](char a, char b) { return (a | 0x20) == b; });
}

bool is_known_sequence(const Callee& callee) {
  return callee.is_one_of("builtins", {"list", "tuple", "set", "frozenset"}) || callee.is("collections", "deque");
}

bool has_sequence_kind(Kind kind) {
  return kind == Kind::list || kind == Kind::tuple || kind == Kind::set || kind == Kind::frozenset;
}

bool is_pair(const Graph& graph, NodeId node) {
  return (graph.kind(node) == Kind::list || graph.kind(node) == Kind::tuple) && graph.length(node) == 2;
}

// The first items decide, since many objects may share a long list.
bool holds_pairs(const Graph& graph, NodeId list) {
  constexpr int kMostLookedAt = 16;
  int looked_at = 0;
  for (const NodeId item : graph.items(list)) {
    if (!is_pair(graph, item)) return false;
    if (++looked_at == kMostLookedAt) break;
  }
  return looked_at != 0;
}

bool sequence_is_empty(const Graph& graph, NodeId node) {
  return has_sequence_kind(graph.kind(node)) && graph.length(node) == 0;
}

// Adds what one object adds to a mapping, the last first. Returns where the mapping goes on.
NodeId add_parts(const Graph& graph, NodeId object, Mapping& mapping) {
  const Construction made = construction_of(graph, object);
  if (graph.object(object).pairs_count != 0) mapping.parts.push_back({object, false});
  if (!made.cls) return kNoNode;
  const bool is_certain = is_known_mapping(*made.cls) || (made.base && is_known_mapping(*made.base));
  if (!is_certain && !is_called_mapping(*made.cls)) return kNoNode;
  if (is_certain && made.keywords != kNoNode && graph.kind(made.keywords) == Kind::dict)
    mapping.parts.push_back({made.keywords, false});
  mapping.is_certain = is_certain;

  const std::size_t place = made.cls->is("collections", "defaultdict") ? 1 : 0;  // its first argument makes values
  const NodeId given = made.argument(graph, place);
  const NodeId list = sequence_of(graph, given);
  if (list == kNoNode) return given;
  if (is_certain || holds_pairs(graph, list)) mapping.parts.push_back({list, true});
  return kNoNode;
}

}  // namespace

std::optional<Mapping> mapping_of(const Graph& graph, NodeId node) {
  if (node == kNoNode) return std::nullopt;
  if (graph.kind(node) == Kind::dict) return Mapping{{{node, false}}, true, false};
  if (graph.kind(node) != Kind::object) return std::nullopt;
  Mapping mapping;
  NodeId copied = add_parts(graph, node, mapping);
  const std::size_t own = graph.object(node).pairs_count != 0 ? 1 : 0;
  const bool is_certain = mapping.is_certain;
  for (std::size_t depth = 0; copied != kNoNode && depth < kDeepestCopy; ++depth) {
    if (graph.kind(copied) == Kind::dict) mapping.parts.push_back({copied, false});
    copied = graph.kind(copied) == Kind::object ? add_parts(graph, copied, mapping) : kNoNode;
  }
  mapping.is_certain = is_certain;
  mapping.takes_argument = mapping.parts.size() > own;
  if (!is_certain && mapping.parts.empty()) return std::nullopt;
  std::ranges::reverse(mapping.parts);
  return mapping;
}

bool MappingPairs::next() {
  for (; part_ < parts_.size(); ++part_, is_in_part_ = false) {
    const MappingPart& part = parts_[part_];
    if (!is_in_part_) {
      at_ = (part.is_list ? graph_->items(part.node) : graph_->pairs(part.node)).begin();
      is_in_part_ = true;
      number_ = 0;
    } else {
      ++number_;
    }
    if (at_ == Graph::Items::Iterator()) continue;
    if (part.is_list) {
      split(*at_);
      ++at_;
      return true;
    }
    key_ = *at_;
    value_ = *++at_;
    ++at_;
    return true;
  }
  return false;
}

void MappingPairs::split(NodeId item) {
  key_ = kNoNode;
  value_ = item;
  if (!is_pair(*graph_, item)) return;
  auto at = graph_->items(item).begin();
  key_ = *at;
  value_ = *++at;
}

void find_keys(const Graph& graph, const Mapping& mapping, std::span<WantedKey> wanted, WalkBudget* budget) {
  for (MappingPairs pairs(graph, mapping.parts); pairs.next();) {
    if (budget != nullptr) budget->spend_steps(1);
    if (pairs.key() == kNoNode || graph.kind(pairs.key()) != Kind::text) continue;
    const auto found = std::ranges::find(wanted, graph.chars(pairs.key()), &WantedKey::key);
    if (found != wanted.end()) found->value = pairs.value();
  }
}

NodeId find_key(const Graph& graph, NodeId node, std::string_view key, WalkBudget* budget) {
  std::array wanted = {WantedKey{key}};
  if (const auto mapping = mapping_of(graph, node)) find_keys(graph, *mapping, wanted, budget);
  return wanted[0].value;
}

NodeId sequence_of(const Graph& graph, NodeId node) {
  for (std::size_t depth = 0; node != kNoNode && depth < kDeepestCopy; ++depth) {
    if (has_sequence_kind(graph.kind(node))) return node;
    const Construction made = construction_of(graph, node);
    const bool is_known = (made.cls && is_known_sequence(*made.cls)) || (made.base && is_known_sequence(*made.base));
    if (!is_known) return kNoNode;
    const NodeId given = made.argument(graph, 0);
    if (graph.length(node) != 0) return given == kNoNode || sequence_is_empty(graph, given) ? node : kNoNode;
    if (given == kNoNode) return node;
    node = given;
  }
  return kNoNode;
}

}  // namespace ballast::torch
