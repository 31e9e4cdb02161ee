// The buffer protocol of Tensor and MemorySpan: memoryview(t), numpy.asarray(t), bytes(t).
#pragma once

#include <pybind11/pybind11.h>

namespace ballast::python {

// Takes the place of what pybind11 would do, which ends the process if the memory cannot be given.
void add_tensor_buffer(pybind11::handle type);
void add_span_buffer(pybind11::handle type);

}  // namespace ballast::python
