// How long this thread has been at work: other than the clock on the wall, it stands still while the machine does
// something else.
#pragma once

#include <time.h>

namespace ballast::test {

inline double cpu_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace ballast::test
