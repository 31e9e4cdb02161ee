// The object in a pickle as a whole, for those who want more than its tensors by name: the graph, and what its nodes
// stand for.
#pragma once

#include <optional>
#include <unordered_map>

#include <ballast/checkpoint.hpp>

#include "formats/pickle/graph.hpp"
#include "formats/torch/rebuild.hpp"

namespace ballast::torch {

struct Objects {
  std::optional<pickle::Graph> graph;  // nothing if the file holds no pickle of an object
  pickle::NodeId root = pickle::kNoNode;
  std::unordered_map<pickle::NodeId, Rebuilt> tensors;   // of the nodes that stand for tensors
  std::unordered_map<pickle::NodeId, Checkpoint> files;  // of the nodes that stand for a whole file
};

// Moves the graph into `objects`, with the tensors that can be reached from the root. What is not to be rebuilt stays a
// node like any other.
void keep_objects(pickle::Graph& graph, pickle::NodeId root, Rebuilder& rebuilder, Objects& objects);

}  // namespace ballast::torch
