// The counter that the overflows of this thread are added to.
#pragma once

#include <ballast/overflows.hpp>

namespace ballast {

OverflowCounter* current_overflow_counter() noexcept;  // null if nobody counts

// Adds to the counter of this thread.
void count_overflows(const Overflows& overflows);

// While this object lives, the overflows of this thread are added to the counter of another thread.
class OverflowsCountedFor {
 public:
  explicit OverflowsCountedFor(OverflowCounter* counter) noexcept;
  ~OverflowsCountedFor();
  OverflowsCountedFor(const OverflowsCountedFor&) = delete;
  OverflowsCountedFor& operator=(const OverflowsCountedFor&) = delete;

 private:
  OverflowCounter* before_;
};

}  // namespace ballast
