// The interpreter's lock, let go of and taken again. While the interpreter ends, taking it would end the thread in the
// middle of C++ code, which aborts the process: a thread that wants it then waits for the end instead.
#pragma once

#include <pybind11/pybind11.h>

namespace ballast::python {

bool is_ending() noexcept;  // whether the interpreter is on its way out

// Lets go of the lock for a while.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the lock, from whatever thread. Do not make one while the interpreter is ending: see is_ending().
using Locked = pybind11::gil_scoped_acquire;

}  // namespace ballast::python
