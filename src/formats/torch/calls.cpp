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
  return graph.length(arguments) == 0 ? kNoNode : *graph.items(arguments).begin();
}

Construction construction_of(const Graph& graph, NodeId object) {
  Construction made{callee_of(graph, object), std::nullopt};
  if (object == kNoNode || graph.kind(object) != Kind::object) return made;
  const pickle::ObjectParts parts = graph.object(object);
  made.arguments = parts.arguments;
  made.keywords = parts.keywords;
  if (!made.cls || made.cls->module != "copyreg") return made;

  const std::string_view function = made.cls->name;
  const auto own = made;
  if (function == "_reconstructor") {
    made.base = global_of(graph, own.argument(graph, 1));
    made.first = made.base && made.base->is("builtins", "object") ? 3 : 2;  // the state of `object` is None
  } else if (function == "__newobj__") {
    made.first = 1;
  } else if (function == "__newobj_ex__") {
    made.arguments = own.argument(graph, 1);
    made.keywords = own.argument(graph, 2);
  } else {
    return made;
  }
  made.cls = global_of(graph, own.argument(graph, 0));
  return made;
}

NodeId Construction::argument(const Graph& graph, std::size_t i) const {
  if (arguments == kNoNode || graph.kind(arguments) != Kind::tuple) return kNoNode;
  std::size_t at = 0;
  for (const NodeId item : graph.items(arguments)) {
    if (at++ == first + i) return item;
  }
  return kNoNode;
}

}  // namespace ballast::torch
