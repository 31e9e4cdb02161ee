// NumPy's arrays, scalars and dtypes as pickles spell them, of NumPy 1 and 2 and of every protocol.
#pragma once

#include <cstdint>
#include <optional>

#include <ballast/limits.hpp>

#include "formats/pickle/graph.hpp"
#include "tensor/numpy_view.hpp"

namespace ballast::torch {

// numpy.dtype("f4", …) with the state that says its order of bytes.
std::optional<NumpyType> pickled_numpy_type(const pickle::Graph& graph, pickle::NodeId node);

struct NumpyArray {
  NumpyType type;
  Shape shape;
  bool is_fortran = false;
  pickle::NodeId data = pickle::kNoNode;  // bytes, or a list where the type is object

  bool is_numeric() const noexcept { return type.dtype.has_value(); }
};

// Nothing where the node is no array. Throws Errc::malformed where it is one that makes no sense.
std::optional<NumpyArray> pickled_numpy_array(const pickle::Graph& graph, pickle::NodeId node, const Limits& limits);

// What the data of a numeric one must come to.
std::uint64_t numpy_bytes(const pickle::Graph& graph, const NumpyArray& array);

struct NumpyScalar {
  NumpyType type;
  std::optional<Tensor> value;  // of rank 0, where it is a number
};
std::optional<NumpyScalar> pickled_numpy_scalar(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
