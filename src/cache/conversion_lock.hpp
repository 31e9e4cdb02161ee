// ConversionLock: at most one process (or thread) converts a checkpoint; the others wait for its cache.
//
// The lock is on the checkpoint itself (flock), so a process that is killed leaves nothing behind. If the file system
// does not lock, two may convert at once, and the later cache replaces the earlier one.
#pragma once

#include <string>

#include <ballast/progress.hpp>

#include "io/posix.hpp"

namespace ballast {

class ConversionLock {
 public:
  // Waits for the owner of the lock, and calls `progress` meanwhile. Throws Errc::cancelled, and Errc::unsupported
  // after so long a time that nobody can be at work any more.
  ConversionLock(const std::string& target, const Progress& progress);
  ~ConversionLock();
  ConversionLock(const ConversionLock&) = delete;
  ConversionLock& operator=(const ConversionLock&) = delete;

 private:
  io::UniqueFd fd_;
};

}  // namespace ballast
