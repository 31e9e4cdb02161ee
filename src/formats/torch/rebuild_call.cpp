#include "formats/torch/rebuild_call.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <array>

#include "formats/pickle/joblib.hpp"
#include "formats/torch/arguments.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/types.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

struct KnownFunction {
  std::string_view module, name;
  Rebuilding function;
};

// clang-format off
constexpr std::array kFunctions = {
    KnownFunction{"torch._utils", "_rebuild_tensor_v2", Rebuilding::tensor_v2},
    KnownFunction{"torch._utils", "_rebuild_parameter", Rebuilding::first_argument},
    KnownFunction{"torch._utils", "_rebuild_tensor", Rebuilding::tensor},
    KnownFunction{"torch._utils", "_rebuild_tensor_v3", Rebuilding::tensor_v3},
    KnownFunction{"torch._utils", "_rebuild_parameter_with_state", Rebuilding::first_argument},
    KnownFunction{"torch._utils", "_rebuild_qtensor", Rebuilding::qtensor},
    KnownFunction{"torch._utils", "_rebuild_sparse_tensor", Rebuilding::sparse},
    KnownFunction{"torch._utils", "_rebuild_sparse_csr_tensor", Rebuilding::sparse},
    KnownFunction{"torch._utils", "_rebuild_meta_tensor_no_storage", Rebuilding::meta},
    KnownFunction{"torch._utils", "_rebuild_wrapper_subclass", Rebuilding::wrapper_subclass},
    KnownFunction{"torch._utils", "_rebuild_nested_tensor", Rebuilding::nested},
    KnownFunction{"torch._utils", "_rebuild_device_tensor_from_numpy", Rebuilding::first_argument},
    KnownFunction{"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", Rebuilding::first_argument},
    KnownFunction{"torch._utils", "_rebuild_xla_tensor", Rebuilding::first_argument},
    KnownFunction{"torch._tensor", "_rebuild_from_type_v2", Rebuilding::from_type},
    KnownFunction{"torch._tensor", "_rebuild_from_type", Rebuilding::from_type},
    KnownFunction{"torch.nn.parameter", "Parameter", Rebuilding::first_of_state},
    KnownFunction{"torch.nn.parameter", "Buffer", Rebuilding::first_of_state},
    KnownFunction{"torch.autograd.variable", "Variable", Rebuilding::first_of_state},
};
// clang-format on

Rebuilding function_of(const Callee& callee) {
  for (const KnownFunction& known : kFunctions) {
    if (callee.is(known.module, known.name)) return known.function;
  }
  if (callee.module.starts_with("numpy.") || callee.module == pickle::kArrayWrapperModule) return Rebuilding::numpy;
  if (tensor_class(callee.module, callee.name)) return Rebuilding::legacy_class;
  return Rebuilding::none;
}

// Honest files do not wrap a tensor deeper than this; deeper wrappers may go round in a circle.
constexpr int kMostWrappers = 16;

// Goes from a call that wraps a tensor to the call that it wraps. Returns false if there is nothing to follow.
bool follow(const Graph& graph, RebuildCall& call) {
  NodeId next = kNoNode;
  if (call.function == Rebuilding::first_argument) {
    const Arguments arguments(graph, call.arguments, call.name);
    arguments.require(1);
    next = arguments[0];
  } else if (call.function == Rebuilding::first_of_state) {
    const NodeId state = graph.object(call.node).state;
    next = first_argument(graph, call.node);
    const bool is_built = state != kNoNode && graph.kind(state) == Kind::tuple && graph.length(state) != 0;
    if (next == kNoNode && is_built) next = *graph.items(state).begin();
    if (next == kNoNode) throw Error(Errc::unsupported, fmt::format("a {} without a tensor", call.name));
  } else if (call.function == Rebuilding::from_type) {
    const Arguments arguments(graph, call.arguments, call.name);
    arguments.require(3);
    const auto inner = global_of(graph, arguments[0]);
    if (!inner) throw Error(Errc::unsupported, "a tensor rebuilt by something that is no global");
    call = {call.node, arguments[2], function_of(*inner), inner->name, arguments.has(3) ? arguments[3] : kNoNode};
    return true;
  } else {
    return false;
  }
  call = graph.kind(next) == Kind::object ? rebuild_call_of(graph, next)
                                          : RebuildCall{next, kNoNode, Rebuilding::none, {}, kNoNode};
  return true;
}

}  // namespace

RebuildCall rebuild_call_of(const Graph& graph, NodeId node) {
  const auto callee = callee_of(graph, node);
  if (!callee) return {};
  return {node, graph.object(node).arguments, function_of(*callee), callee->name, kNoNode};
}

RebuildCall unwrapped(const Graph& graph, RebuildCall call) {
  for (int wrappers = 0; follow(graph, call); ++wrappers) {
    if (wrappers == kMostWrappers) throw Error(Errc::malformed, "a tensor is wrapped in too many others");
  }
  return call;
}

}  // namespace ballast::torch
