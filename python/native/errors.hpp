// The exceptions that Python sees: ballast.Error, and a subclass for each kind that is also what Python people catch.
#pragma once

#include <pybind11/pybind11.h>

#include <ballast/error.hpp>

namespace ballast::python {

// Makes the classes, and has pybind11 translate every ballast::Error into one of them.
void add_errors(pybind11::module_& module);

// Raises the exception for an error. `name` is the tensor or key that is not there, if the error is about one.
[[noreturn]] void raise(const Error& error, const std::string& name = {});

// Raises ballast.NoSuchTensor, which is a KeyError.
[[noreturn]] void raise_no_tensor(const Error& error, const std::string& name);

}  // namespace ballast::python
