#include "formats/torch/calls.hpp"

#include "formats/pickle/globals.hpp"

namespace ballast::torch {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

std::optional<Callee> global_of(const Graph& graph, NodeId node) {
  if (node == kNoNode || graph.kind(node) != Kind::global) return std::nullopt;
  const auto global = graph.global(node);
  return Callee{pickle::python3_module(global.module), global.name};
}

std::optional<Callee> callee_of(const Graph& graph, NodeId object) {
  if (object == kNoNode || graph.kind(object) != Kind::object) return std::nullopt;
  const NodeId callee = graph.object(object).callee;
  // A class that a tar or a legacy stream stored with its source: ("module", class, file, source).
  if (callee != kNoNode && graph.kind(callee) == Kind::persistent) {
    const NodeId id = graph.persistent_id(callee);
    constexpr std::uint64_t kMost = 8;
    if (graph.kind(id) != Kind::tuple || graph.length(id) > kMost) return std::nullopt;
    for (const NodeId item : graph.items(id)) {
      if (graph.kind(item) == Kind::global) return global_of(graph, item);
    }
    return std::nullopt;
  }
  return global_of(graph, callee);
}

NodeId first_argument(const Graph& graph, NodeId object) {
  const NodeId arguments = graph.object(object).arguments;
  if (arguments == kNoNode || graph.kind(arguments) != Kind::tuple || graph.length(arguments) == 0) return kNoNode;
  return *graph.items(arguments).begin();
}

NodeId find_key(const Graph& graph, NodeId dict, std::string_view key) {
  if (dict == kNoNode || (graph.kind(dict) != Kind::dict && graph.kind(dict) != Kind::object)) return kNoNode;
  NodeId found = kNoNode, last_key = kNoNode;
  for (const NodeId node : graph.pairs(dict)) {
    if (last_key == kNoNode) {
      last_key = node;
      continue;
    }
    // The last one wins, as in a dict.
    if (graph.kind(last_key) == Kind::text && graph.chars(last_key) == key) found = node;
    last_key = kNoNode;
  }
  return found;
}

}  // namespace ballast::torch
