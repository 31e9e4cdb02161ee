#include "formats/torch/optimizer.hpp"

#include <array>

#include "formats/torch/mapping.hpp"
#include "formats/torch/python_text.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

bool may_be_parameter(const Graph& graph, NodeId node) {
  return node != kNoNode && (graph.kind(node) == Kind::object || graph.kind(node) == Kind::persistent);
}

bool is_keyed_by_parameters(const Graph& graph, const Mapping& state) {
  MappingPairs pairs(graph, state.parts);
  return pairs.next() && may_be_parameter(graph, pairs.key());
}

}  // namespace

void ParameterNumbers::add(const Graph& graph, NodeId parameter, std::uint64_t number) {
  if (graph.kind(parameter) == Kind::persistent)
    by_id_.emplace(key_text(graph, graph.persistent_id(parameter)), number);
  else
    by_node_.emplace(parameter, number);
}

std::optional<std::uint64_t> ParameterNumbers::find(const Graph& graph, NodeId parameter) const {
  if (graph.kind(parameter) == Kind::persistent) {
    const auto found = by_id_.find(key_text(graph, graph.persistent_id(parameter)));
    return found == by_id_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto found = by_node_.find(parameter);
  return found == by_node_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<OptimizerState> optimizer_state(const Graph& graph, NodeId node, WalkBudget& budget) {
  const NodeId attributes = graph.kind(node) == Kind::object ? graph.object(node).state : kNoNode;
  const auto mapping = mapping_of(graph, attributes != kNoNode ? attributes : node);
  if (!mapping) return std::nullopt;
  std::array wanted = {WantedKey{"state"}, WantedKey{"param_groups"}};
  find_keys(graph, *mapping, wanted, &budget);
  const auto states = mapping_of(graph, wanted[0].value);
  const NodeId groups = sequence_of(graph, wanted[1].value);
  if (!states || groups == kNoNode || !is_keyed_by_parameters(graph, *states)) return std::nullopt;

  OptimizerState optimizer{wanted[0].value, {}};
  std::uint64_t next = 0;
  for (const NodeId group : graph.items(groups)) {
    budget.spend_steps(1);
    const NodeId parameters = sequence_of(graph, find_key(graph, group, "params", &budget));
    if (parameters == kNoNode) continue;
    for (const NodeId parameter : graph.items(parameters)) {
      budget.spend_steps(1);
      optimizer.numbers.add(graph, parameter, next++);
    }
  }
  return optimizer;
}

}  // namespace ballast::torch
