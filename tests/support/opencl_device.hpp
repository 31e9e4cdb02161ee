// Tests that need an OpenCL device say so if there is none. PoCL is a device that needs no hardware.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ballast/device.hpp>

#include "builders/temp_dir.hpp"

namespace ballast::test {

// PoCL's threads and locks are not compiled with the sanitizer, which then reports races that do not exist.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kCanWatchPocl = false;
#else
inline constexpr bool kCanWatchPocl = true;
#endif

// PoCL ends the program if it cannot see the processors (a chroot without /sys), so a child process tries first.
inline bool has_opencl_device() {
  static const bool has_one = [] {
    const pid_t child = fork();
    if (child == 0) _exit(device_count(Device::Kind::opencl) > 0 ? 0 : 1);
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }();
  return has_one;
}

class OnOpenCl : public testing::Test {
 protected:
  void SetUp() override {
    static const TempDir cache;  // otherwise PoCL would keep a cache in the home folder of the user
    setenv("POCL_CACHE_DIR", (cache / "").c_str(), 1);
    if (!kCanWatchPocl) GTEST_SKIP() << "ThreadSanitizer does not see into PoCL";
    if (!has_opencl_device()) GTEST_SKIP() << "there is no OpenCL device here that works";
  }
};

}  // namespace ballast::test
