// A job that may take long: it runs in a thread of its own without the interpreter's lock, while the thread that called
// it passes on progress and Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>

#include <ballast/progress.hpp>

namespace ballast::python {

// Runs `job`, and returns or throws what it returns or throws. `progress` is None, or a callable that takes a phase,
// the bytes done and all bytes; if the callable returns False, or a signal handler raises, the job is cancelled. The
// job may call its Progress with a state without a phase, from any thread, to ask whether it should go on.
void run_job(const pybind11::object& progress, const std::function<void(const Progress&)>& job);

}  // namespace ballast::python
