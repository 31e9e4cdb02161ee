// The state of an optimizer that was pickled as an object: it is keyed by the parameters themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/name_hash.hpp"
#include "formats/pickle/graph.hpp"
#include "formats/torch/walk_budget.hpp"

namespace ballast::torch {

// The number that each parameter has in the state_dict() of its optimizer: its position in "param_groups", counted
// through all groups.
class ParameterNumbers {
 public:
  void add(const pickle::Graph& graph, pickle::NodeId parameter, std::uint64_t number);
  std::optional<std::uint64_t> find(const pickle::Graph& graph, pickle::NodeId parameter) const;

 private:
  std::unordered_map<pickle::NodeId, std::uint64_t> by_node_;
  NameMap<std::uint64_t> by_id_;  // a tar mentions a tensor by its id, with a new node each time
};

struct OptimizerState {
  pickle::NodeId state;  // the mapping that is keyed by parameters
  ParameterNumbers numbers;
};

// For an object or mapping with "state" and "param_groups", if the state is keyed by parameters.
std::optional<OptimizerState> optimizer_state(const pickle::Graph& graph, pickle::NodeId node, WalkBudget& budget);

}  // namespace ballast::torch
