// For ballast.gguf: where everything in the header of a GGUF file lies, byte for byte.
#pragma once

#include <pybind11/pybind11.h>

namespace ballast::python {

void add_gguf(pybind11::module_& module);

}  // namespace ballast::python
