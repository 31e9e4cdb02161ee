// ProgressMeter: counts bytes for a Progress, one thread at a time, and throws if the Progress says stop.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include <ballast/error.hpp>
#include <ballast/progress.hpp>

namespace ballast {

class ProgressMeter {
 public:
  // `progress` may be empty. The meter keeps a copy of it, because callers pass options that are gone by the next
  // statement.
  ProgressMeter(Progress progress, const char* phase, std::uint64_t total_bytes)
      : progress_(std::move(progress)), state_{phase, 0, total_bytes} {}

  void add(std::uint64_t bytes) {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    state_.done_bytes += bytes;
    if (!progress_(state_)) throw Error(Errc::cancelled, "cancelled");
  }

 private:
  Progress progress_;
  std::mutex mutex_;
  ProgressState state_;
};

}  // namespace ballast
