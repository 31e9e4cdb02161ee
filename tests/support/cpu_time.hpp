// How long this thread has worked. Unlike a wall clock, this time stands still while the machine does other work.
#pragma once

#include <time.h>

namespace ballast::test {

inline double cpu_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace ballast::test
