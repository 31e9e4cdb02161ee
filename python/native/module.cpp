// The native half of the Python module; the Python half, in ../ballast, is what people import.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "checkpoint.hpp"
#include "errors.hpp"
#include "gguf.hpp"
#include "io/fault_guard.hpp"
#include "objects.hpp"
#include "peft.hpp"
#include "remote.hpp"
#include "safetensors.hpp"
#include "tensor.hpp"
#include "verbs.hpp"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native half of Ballast. Import ballast instead.";
  module.attr("version") = BALLAST_VERSION;
  // A second interpreter gets this module without asking: the Python half asks.
  module.def("is_main_interpreter", [] { return PyInterpreterState_Get() == PyInterpreterState_Main(); });
  ballast::io::share_bus_errors();  // faulthandler may be enabled at any time
  ballast::python::add_errors(module);
  ballast::python::add_tensor(module);
  ballast::python::add_checkpoint(module);
  ballast::python::add_remote(module);
  ballast::python::add_verbs(module);
  ballast::python::add_objects(module);
  ballast::python::add_peft(module);
  ballast::python::add_safetensors(module);
  ballast::python::add_gguf(module);
}
