#include "core/overflow_counter.hpp"

#include <cmath>
#include <utility>

namespace ballast {
namespace {

thread_local OverflowCounter* counter_of_this_thread = nullptr;

}  // namespace

void Overflows::add(const Overflows& more) noexcept {
  count += more.count;
  if (std::fabs(more.largest) <= std::fabs(largest)) return;
  largest = more.largest;
  dtype = more.dtype;
}

OverflowCounter::OverflowCounter() noexcept : outer_(std::exchange(counter_of_this_thread, this)) {}

OverflowCounter::~OverflowCounter() { counter_of_this_thread = outer_; }

Overflows OverflowCounter::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

void OverflowCounter::add(const Overflows& more) {
  const std::lock_guard lock(mutex_);
  total_.add(more);
}

OverflowCounter* current_overflow_counter() noexcept { return counter_of_this_thread; }

void count_overflows(const Overflows& overflows) {
  if (overflows.count != 0 && counter_of_this_thread != nullptr) counter_of_this_thread->add(overflows);
}

OverflowsCountedFor::OverflowsCountedFor(OverflowCounter* counter) noexcept
    : before_(std::exchange(counter_of_this_thread, counter)) {}

OverflowsCountedFor::~OverflowsCountedFor() { counter_of_this_thread = before_; }

}  // namespace ballast
