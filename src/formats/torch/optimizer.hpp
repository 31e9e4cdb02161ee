// The state of an optimizer that was pickled as it is: keyed by the parameters themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/name_hash.hpp"
#include "formats/pickle/graph.hpp"
#include "formats/torch/walk_budget.hpp"

namespace ballast::torch {

// The number that each parameter has in the state_dict() of its optimizer: its place in "param_groups", all groups
// counted on.
class ParameterNumbers {
 public:
  void add(const pickle::Graph& graph, pickle::NodeId parameter, std::uint64_t number);
  std::optional<std::uint64_t> find(const pickle::Graph& graph, pickle::NodeId parameter) const;

 private:
  std::unordered_map<pickle::NodeId, std::uint64_t> by_node_;
  NameMap<std::uint64_t> by_id_;  // a tar mentions a tensor by its id, each time anew
};

struct OptimizerState {
  pickle::NodeId state;  // the mapping that is keyed by parameters
  ParameterNumbers numbers;
};

// Of an object or mapping with "state" and "param_groups", where something else than plain keys is in the former.
std::optional<OptimizerState> optimizer_state(const pickle::Graph& graph, pickle::NodeId node, WalkBudget& budget);

}  // namespace ballast::torch
