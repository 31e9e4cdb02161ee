// Limits what walking the tree in a pickle may cost.
#pragma once

#include <cstdint>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// Objects are shared, so a tree can be larger than its file without end; an honest tree reaches each object and each
// name a few times at most. Throws Errc::limit if the budget has been spent.
class WalkBudget {
 public:
  explicit WalkBudget(const pickle::Graph& graph);

  void spend_steps(std::uint64_t count);  // objects looked at
  void spend_bytes(std::uint64_t count);  // of names and values made

 private:
  std::uint64_t steps_, bytes_;
};

}  // namespace ballast::torch
