// The names of what a pickle would have called. Nothing here calls anything.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// The global behind an object, its module as Python 3 knows it; nothing if the callee is not a global.
struct Callee {
  std::string_view module, name;
  bool is(std::string_view m, std::string_view n) const noexcept { return module == m && name == n; }
  bool is_one_of(std::string_view m, std::initializer_list<std::string_view> names) const noexcept {
    return module == m && std::find(names.begin(), names.end(), name) != names.end();
  }
};
std::optional<Callee> callee_of(const pickle::Graph& graph, pickle::NodeId object);

// The first argument of an object; kNoNode if there is none.
pickle::NodeId first_argument(const pickle::Graph& graph, pickle::NodeId object);

// The global that a node is, its module as Python 3 knows it.
std::optional<Callee> global_of(const pickle::Graph& graph, pickle::NodeId node);

// The class of an object and what it was given. These are the callee and its arguments, except for three functions by
// which older protocols make objects, whose arguments name the class:
//   copyreg._reconstructor(class, base, state of the base)
//   copyreg.__newobj__(class, …)
//   copyreg.__newobj_ex__(class, (…), {…})
struct Construction {
  std::optional<Callee> cls, base;             // only _reconstructor names a base
  pickle::NodeId arguments = pickle::kNoNode;  // a tuple
  std::size_t first = 0;                       // the first argument that was given to the class
  pickle::NodeId keywords = pickle::kNoNode;   // a dict

  pickle::NodeId argument(const pickle::Graph& graph, std::size_t i) const;  // kNoNode if there are fewer
};
Construction construction_of(const pickle::Graph& graph, pickle::NodeId object);

}  // namespace ballast::torch
