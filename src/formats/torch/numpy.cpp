#include "formats/torch/numpy.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"
#include "formats/pickle/joblib.hpp"
#include "formats/torch/arguments.hpp"
#include "formats/torch/calls.hpp"
#include "formats/torch/pickled_bytes.hpp"

namespace ballast::torch {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

// numpy.core became numpy._core in NumPy 2.
bool is_numpy(const Callee& callee, std::string_view module, std::string_view name) {
  std::string_view found = callee.module;
  if (callee.name != name) return false;
  for (const std::string_view prefix : {"numpy.core.", "numpy._core."}) {
    if (found.starts_with(prefix)) return found.substr(prefix.size()) == module;
  }
  return false;
}

Shape checked_shape(const Arguments& from, std::size_t i, const Limits& limits) {
  const auto dims = from.counts(i, "shape of an array");
  if (dims.size() > limits.max_rank) from.complain(i, fmt::format("the array has {} dimensions", dims.size()));
  return Shape(dims);
}

// _reconstruct(ndarray, (0,), b"b"), then BUILD (version, shape, dtype, is_fortran, data).
std::optional<NumpyArray> reconstructed(const Graph& graph, NodeId node, const Limits& limits) {
  const NodeId state = graph.object(node).state;
  if (state == kNoNode || graph.kind(state) != Kind::tuple) return std::nullopt;
  const Arguments built(graph, state, "numpy array");
  built.require(5);
  const auto type = pickled_numpy_type(graph, built[2]);
  if (!type) return std::nullopt;
  return NumpyArray{*type, checked_shape(built, 1, limits), built.truth(3), built[4]};
}

// _frombuffer(bytes, dtype, shape, order), since protocol 5.
std::optional<NumpyArray> from_buffer(const Graph& graph, NodeId node, const Limits& limits) {
  const Arguments arguments(graph, graph.object(node).arguments, "numpy _frombuffer");
  arguments.require(4);
  const auto type = pickled_numpy_type(graph, arguments[1]);
  if (!type) return std::nullopt;
  return NumpyArray{*type, checked_shape(arguments, 2, limits), arguments.text(3, "order") == "F", arguments[0]};
}

// An array of joblib: the wrapper's attributes say what it is, and its only item is the bytes behind it.
std::optional<NumpyArray> wrapped(const Graph& graph, NodeId node, const Limits& limits) {
  const NodeId type_node = wrapper_attribute(graph, node, "dtype"), shape = wrapper_attribute(graph, node, "shape");
  const NodeId order = wrapper_attribute(graph, node, "order");
  const auto items = graph.items(node);
  if (type_node == kNoNode || shape == kNoNode || !(items.begin() != items.end())) return std::nullopt;
  const auto type = pickled_numpy_type(graph, type_node);
  if (!type || !type->dtype) return std::nullopt;
  const Arguments dims(graph, shape, "joblib array");
  if (graph.length(shape) > limits.max_rank)
    throw Error(Errc::limit, "an array of joblib's has too many dimensions")
        .at_byte(graph[node].offset)
        .hint(raise_limit("max_rank"));
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < graph.length(shape); ++i) sizes.push_back(dims.count(i, "shape of an array"));
  const bool is_fortran = order != kNoNode && graph.kind(order) == Kind::text && graph.chars(order) == "F";
  return NumpyArray{*type, Shape(sizes), is_fortran, *items.begin()};
}

bool is_none(const Graph& graph, const Arguments& state, std::size_t i) {
  return !state.has(i) || graph.kind(state[i]) == Kind::none;
}

}  // namespace

std::optional<NumpyType> pickled_numpy_type(const Graph& graph, NodeId node) {
  const auto callee = callee_of(graph, node);
  if (!callee || !callee->is("numpy", "dtype")) return std::nullopt;
  const NodeId code = first_argument(graph, node);
  if (code == kNoNode || graph.kind(code) != Kind::text) return std::nullopt;

  std::string spelled(graph.chars(code));
  const NodeId state = graph.object(node).state;
  if (state != kNoNode && graph.kind(state) == Kind::tuple) {
    // (version, order of bytes, sub-array, names, fields, …)
    const Arguments built(graph, state, "numpy dtype");
    if (!is_none(graph, built, 2) || !is_none(graph, built, 3)) return NumpyType{"|V", std::nullopt, false};
    if (built.has(1) && graph.kind(built[1]) == Kind::text) spelled = std::string(graph.chars(built[1])) + spelled;
  }
  return numpy_type(spelled);
}

std::optional<NumpyArray> pickled_numpy_array(const Graph& graph, NodeId node, const Limits& limits) {
  const auto callee = callee_of(graph, node);
  if (!callee) return std::nullopt;
  if (is_numpy(*callee, "multiarray", "_reconstruct")) return reconstructed(graph, node, limits);
  if (is_numpy(*callee, "numeric", "_frombuffer")) return from_buffer(graph, node, limits);
  if (pickle::is_array_wrapper(graph, node)) return wrapped(graph, node, limits);
  return std::nullopt;
}

std::uint64_t numpy_bytes(const Graph& graph, const NumpyArray& array) {
  const auto count = array.shape.numel();
  const auto size = count ? bytes_of(*array.type.dtype, *count) : std::nullopt;
  if (!size)
    throw Error(Errc::malformed, "the size of an array does not fit 64 bits").at_byte(graph[array.data].offset);
  return *size;
}

std::optional<NumpyScalar> pickled_numpy_scalar(const Graph& graph, NodeId node) {
  const auto callee = callee_of(graph, node);
  if (!callee || !is_numpy(*callee, "multiarray", "scalar")) return std::nullopt;
  const Arguments arguments(graph, graph.object(node).arguments, "numpy scalar");
  arguments.require(1);
  const auto type = pickled_numpy_type(graph, arguments[0]);
  if (!type) return std::nullopt;
  NumpyScalar scalar{*type, std::nullopt};
  if (type->dtype && arguments.has(1)) {
    const std::uint64_t size = info(*type->dtype).block_bytes;
    scalar.value = numpy_view(*type, {}, false, pickled_bytes(graph, arguments[1], size));
  }
  return scalar;
}

}  // namespace ballast::torch
