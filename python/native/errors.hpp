// The exceptions that Python sees: ballast.Error, and a subclass for each kind that is also what Python people catch.
#pragma once

#include <exception>

#include <pybind11/pybind11.h>

#include <ballast/error.hpp>

#include "words.hpp"

namespace ballast::python {

// Makes the classes, and has pybind11 translate every ballast::Error into one of them.
void add_errors(pybind11::module_& module);

// Raises the exception for an error, with the words of whoever called.
[[noreturn]] void raise(const Error& error, Caller caller = Caller::module);

// What an object of Python's raised where the library cannot let it pass: the cause of an Error.
std::exception_ptr cause_of(const pybind11::error_already_set& error);

// Runs `job`, whose errors speak of the keywords that `caller` has.
template <typename Job>
auto for_caller(Caller caller, const Job& job) {
  try {
    return job();
  } catch (const Error& error) {
    raise(error, caller);
  }
}

}  // namespace ballast::python
