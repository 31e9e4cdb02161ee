// The verbs of the command, run in this process.
#pragma once

#include <pybind11/pybind11.h>

namespace ballast::python {

void add_verbs(pybind11::module_& module);

}  // namespace ballast::python
