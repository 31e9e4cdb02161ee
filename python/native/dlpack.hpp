// DLPack: a tensor's memory for another library, by the protocol of https://dmlc.github.io/dlpack.
#pragma once

#include <pybind11/pybind11.h>

#include "tensor.hpp"

namespace ballast::python {

// The capsule of __dlpack__: "dltensor_versioned" for a consumer that knows versions, else "dltensor".
pybind11::object dlpack_of(PyTensor& self, const pybind11::object& stream, const pybind11::object& max_version,
                           const pybind11::object& dl_device, const pybind11::object& copy);

// The tensor in a capsule that another library made, without a copy if it is contiguous memory of the cpu. The capsule
// is used up.
Tensor tensor_of_dlpack(const pybind11::capsule& capsule);

}  // namespace ballast::python
