// ProgressBar: shows on a terminal how far a job has come, if the job takes longer than half a second. Ctrl-C also
// reaches a job through its callback.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <ballast/progress.hpp>

#include "terminal.hpp"

namespace ballast::cli {

class ProgressBar {
 public:
  // If `visible` is false, the bar draws nothing, but still cancels. If there is a `host`, it is told instead.
  ProgressBar(const Terminal& terminal, bool visible, Progress host = {});
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  Progress callback();  // for a job, which the bar outlives
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool update(ProgressState state);
  void draw(const ProgressState& state, double seconds);

  const Terminal& terminal_;
  Progress host_;
  bool visible_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

}  // namespace ballast::cli
