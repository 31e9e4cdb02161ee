// Calls of the functions by which PyTorch rebuilds a tensor: which function, with which arguments, below how many
// wrappers.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

enum class Rebuilding : std::uint8_t {
  none,
  tensor,            // (storage, offset, size, stride)
  tensor_v2,         // (storage, offset, size, stride, requires_grad, hooks [, metadata])
  tensor_v3,         // (storage, offset, size, stride, requires_grad, hooks, dtype [, metadata])
  first_argument,    // of a function that only adds to a tensor: (data, …)
  first_of_state,    // the same, or the first item of a state: a Parameter or Variable of the years before 0.4
  from_type,         // (function, class, arguments, state)
  qtensor,           // (storage, offset, size, stride, quantizer, requires_grad, hooks)
  sparse,            // (layout, (indices, values, size))
  meta,              // (dtype, size, stride, requires_grad)
  wrapper_subclass,  // (class, dtype, size, stride, …)
  nested,            // (buffer, sizes, strides, offsets)
  legacy_class,      // built by a state (storage, offset, size, stride)
  numpy,             // an array
};

// A function with its arguments.
struct RebuildCall {
  pickle::NodeId node = pickle::kNoNode;       // the object, for its state and for complaints
  pickle::NodeId arguments = pickle::kNoNode;  // a tuple
  Rebuilding function = Rebuilding::none;
  std::string_view name;
  pickle::NodeId state = pickle::kNoNode;  // the attributes that a wrapper was given beside its arguments

  // Whether the call gives one tensor and takes no other tensors.
  bool is_of_storage() const noexcept {
    return function == Rebuilding::tensor || function == Rebuilding::tensor_v2 || function == Rebuilding::tensor_v3;
  }
};

RebuildCall rebuild_call_of(const pickle::Graph& graph, pickle::NodeId node);

// The call that wrappers are put around; the call itself if there are none. Throws Errc::malformed if there are so many
// wrappers that they may go round in a circle.
RebuildCall unwrapped(const pickle::Graph& graph, RebuildCall call);

}  // namespace ballast::torch
