// NumPy's arrays, scalars and dtypes as pickles spell them, for NumPy 1 and 2 and every protocol.
#pragma once

#include <cstdint>
#include <optional>

#include <ballast/limits.hpp>

#include "formats/pickle/graph.hpp"
#include "tensor/numpy_view.hpp"

namespace ballast::torch {

// numpy.dtype("f4", …) with the state that says its byte order.
std::optional<NumpyType> pickled_numpy_type(const pickle::Graph& graph, pickle::NodeId node);

struct NumpyArray {
  NumpyType type;
  Shape shape;
  bool is_fortran = false;
  pickle::NodeId data = pickle::kNoNode;  // bytes, or a list if the type is object

  bool is_numeric() const noexcept { return type.dtype.has_value(); }
};

// Nothing if the node is not an array. Throws Errc::malformed if it is an array that makes no sense.
std::optional<NumpyArray> pickled_numpy_array(const pickle::Graph& graph, pickle::NodeId node, const Limits& limits);

// The number of bytes that the data of a numeric array must have.
std::uint64_t numpy_bytes(const pickle::Graph& graph, const NumpyArray& array);

struct NumpyScalar {
  NumpyType type;
  std::optional<Tensor> value;  // of rank 0, if it is a number
};
std::optional<NumpyScalar> pickled_numpy_scalar(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
