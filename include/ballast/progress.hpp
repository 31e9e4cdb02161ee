// Progress: how a long job tells its caller how far it is, and how the caller stops it.
//
// The callback belongs to the caller. A job calls it from one thread at a time, and not after the job has returned.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace ballast {

struct ProgressState {
  std::string_view phase;  // "preparing", "writing", "hashing", ...
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// The job calls this from one thread at a time, but not always from the same thread. Return false to cancel: the job
// then throws Error(Errc::cancelled) and leaves no trace, except the finished files of a job that writes several: the
// same save() continues from those files.
using Progress = std::function<bool(const ProgressState&)>;

}  // namespace ballast
