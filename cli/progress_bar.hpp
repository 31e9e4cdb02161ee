// ProgressBar: how far a job has come, on a terminal, for those that take longer than half a second. It is also how
// Ctrl-C reaches a job.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <ballast/progress.hpp>

#include "terminal.hpp"

namespace ballast::cli {

class ProgressBar {
 public:
  // Draws nothing, and still cancels, where `visible` is false.
  ProgressBar(const Terminal& terminal, bool visible);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // To be given to one job, or to several that together have `total_bytes`, one after the other.
  Progress callback();
  Progress part_of(std::uint64_t total_bytes);
  void finish_part(std::uint64_t bytes) { before_ += bytes; }

  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool update(ProgressState state);
  void draw(const ProgressState& state, double seconds);

  const Terminal& terminal_;
  bool visible_;
  bool drawn_ = false;
  std::uint64_t before_ = 0;  // bytes of the parts that are done
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

}  // namespace ballast::cli
