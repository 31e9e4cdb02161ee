// Nodes as Python would show them: the keys of dicts that are not text, and the values beside the tensors.
#pragma once

#include <cstddef>
#include <string>

#include <ballast/checkpoint.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// repr(), cut after about `most` bytes. It does not recurse; an object that contains itself is cut, too.
std::string python_repr(const pickle::Graph& graph, pickle::NodeId node, std::size_t most = 200);

// A dict's key for use in a name: text as it is, everything else by its repr.
std::string key_text(const pickle::Graph& graph, pickle::NodeId node);

// A leaf of the tree, without its path.
PlainValue plain_value(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
