// Which counter the overflows of this thread go to.
#pragma once

#include <ballast/overflows.hpp>

namespace ballast {

OverflowCounter* current_overflow_counter() noexcept;  // null where nobody counts

// To the counter of this thread.
void count_overflows(const Overflows& overflows);

// While it lives, what this thread reads is counted for another thread.
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
