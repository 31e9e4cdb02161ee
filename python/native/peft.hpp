// Adapters as PEFT's functions take them: state dicts and a configuration.
#pragma once

#include <pybind11/pybind11.h>

namespace ballast::python {

void add_peft(pybind11::module_& module);

}  // namespace ballast::python
