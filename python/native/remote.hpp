// What Python says about targets that are addresses.
#pragma once

#include <pybind11/pybind11.h>

#include <ballast/remote.hpp>

namespace ballast::python {

// Files for {"token": …, "cache_dir": …, "endpoint": …, "offline": …, "headers": {…}, "ca_file": …, "plain_http": …},
// of which each may be missing; null for an empty dict, which means the usual ones.
FilesPtr remote_files_of(const pybind11::dict& given);

// If the handler of a signal raised something while this thread waited for a server, raises that. Called with the lock,
// when a reading failed.
void raise_what_a_signal_raised();

void add_remote(pybind11::module_& module);

}  // namespace ballast::python
