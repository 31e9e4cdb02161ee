// Progress: how a long job tells its caller where it is, and how the caller stops it.
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

// Called from one thread at a time, not always the same one. Return false to cancel: the job then throws
// Error(Errc::cancelled) and leaves no trace, but for the finished files of a job that writes several: save() goes on
// with those when it is asked for the same again.
using Progress = std::function<bool(const ProgressState&)>;

}  // namespace ballast
