// What the drop-in ballast.safetensors needs of the library: a file as the reference package sees it, and files written
// as the reference package writes them.
#pragma once

#include <pybind11/pybind11.h>

namespace ballast::python {

void add_safetensors(pybind11::module_& module);

}  // namespace ballast::python
