// ballast.load(): the object that a pickle holds, as Python objects. Nothing of the file is imported or called.
#pragma once

#include <pybind11/pybind11.h>

namespace ballast::python {

void add_objects(pybind11::module_& module);

}  // namespace ballast::python
