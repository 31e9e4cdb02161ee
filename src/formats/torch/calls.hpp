// What a pickle would have called, by name. Nothing here calls anything.
#pragma once

#include <optional>
#include <string_view>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// The global behind an object, its module as Python 3 knows it; nothing where the callee is no global.
struct Callee {
  std::string_view module, name;
  bool is(std::string_view m, std::string_view n) const noexcept { return module == m && name == n; }
};
std::optional<Callee> callee_of(const pickle::Graph& graph, pickle::NodeId object);

// The first argument of an object; kNoNode where there is none.
pickle::NodeId first_argument(const pickle::Graph& graph, pickle::NodeId object);

// The global that a node is, its module as Python 3 knows it.
std::optional<Callee> global_of(const pickle::Graph& graph, pickle::NodeId node);

// A value of a dict, or of the pairs of an object, by a text key; kNoNode where there is none. Linear.
pickle::NodeId find_key(const pickle::Graph& graph, pickle::NodeId dict, std::string_view key);

}  // namespace ballast::torch
