#include "gil.hpp"

#include <unistd.h>

namespace ballast::python {

bool is_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

Unlocked::~Unlocked() {
  const bool is_main_thread = gettid() == getpid();  // which ends the interpreter, and may take its lock meanwhile
  while (!is_main_thread && is_ending()) pause();    // a daemon thread; the process ends under it
  PyEval_RestoreThread(state_);
}

}  // namespace ballast::python
