// What hangs below a node of the tree, and what each of them is called.
#pragma once

#include <string>
#include <vector>

#include <ballast/limits.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// What a walk may cost. Objects are shared, so a tree can be larger than its file without end; an honest one comes to
// each object and to each name a few times at most. Throws Errc::limit where it has been spent.
class WalkBudget {
 public:
  explicit WalkBudget(const pickle::Graph& graph);

  void spend_steps(std::uint64_t count);  // objects looked at
  void spend_bytes(std::uint64_t count);  // of names and values made

 private:
  std::uint64_t steps_, bytes_;
};

struct Child {
  std::string key;
  pickle::NodeId node;
};
using Children = std::vector<Child>;

// Of a dict its values, of a list or tuple its items, of an nn.Module what its state_dict() names and then its
// attributes, of any other object its constructor's arguments, attributes and items.
Children children_of(const pickle::Graph& graph, pickle::NodeId node, const Limits& limits, WalkBudget& budget);

// Whether a node is shown as a value: it has nothing below it, or it is an object that stands for a value.
bool is_leaf(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
