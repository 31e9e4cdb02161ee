// The native half of the Python module; the Python half, in ../ballast, is what people import.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "checkpoint.hpp"
#include "errors.hpp"
#include "objects.hpp"
#include "tensor.hpp"
#include "verbs.hpp"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native half of Ballast. Import ballast instead.";
  module.attr("version") = BALLAST_VERSION;
  ballast::python::add_errors(module);
  ballast::python::add_tensor(module);
  ballast::python::add_checkpoint(module);
  ballast::python::add_verbs(module);
  ballast::python::add_objects(module);
}
