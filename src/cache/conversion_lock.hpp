// ConversionLock: at most one process (or thread) converts a checkpoint; the others wait for what it makes.
//
// The lock is on the checkpoint itself (flock), so nothing is left behind by whoever is killed. Where the file system
// does not lock there is none: then two may convert at once, and the later one replaces what the earlier one made.
#pragma once

#include <string>

#include <ballast/progress.hpp>

#include "io/posix.hpp"

namespace ballast {

class ConversionLock {
 public:
  // Waits for whoever has it, and calls `progress` meanwhile. Throws Errc::cancelled, and Errc::unsupported after so
  // long that nobody can be at work any more.
  ConversionLock(const std::string& target, const Progress& progress);
  ~ConversionLock();
  ConversionLock(const ConversionLock&) = delete;
  ConversionLock& operator=(const ConversionLock&) = delete;

 private:
  io::UniqueFd fd_;
};

}  // namespace ballast
