// From the object in a pickle to named tensors: flattens the tree.
//
// Dicts and lists give their keys and indices; an nn.Module of whatever class gives the names of its state_dict();
// other unknown objects give their attributes, and their constructor's arguments as <arg0>, <arg1>.
#pragma once

#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

#include "formats/torch/rebuild.hpp"

namespace ballast::torch {

// Adds what lies below `root` to the checkpoint: tensors, composites, plain values, notes. `prefix` is the path of the
// root itself. Visits a shared object once for each path to it, up to a number of visits that grows only with the
// pickle.
void walk(const pickle::Graph& graph, pickle::NodeId root, const std::string& prefix, Rebuilder& rebuilder,
          const Limits& limits, Checkpoint& checkpoint);

}  // namespace ballast::torch
