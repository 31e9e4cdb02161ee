// Overflows: finite values that did not fit the type that they were written in.
//
// Rounding to nearest is what a cast is for, and is never counted, not even where it rounds to zero. What is counted is
// a finite value beyond the reach of the type: in F16, BF16, F32 it becomes infinite, in an F8 type the largest number
// that there is, and in a block of ggml's whose scale does not reach so far anything, with the values beside it.
#pragma once

#include <cstdint>
#include <mutex>

namespace ballast {

struct Overflows {
  std::uint64_t count = 0;
  double largest = 0;  // of those, the one that is farthest from zero

  void add(const Overflows& more) noexcept;
};

// Counts the overflows of whatever is read while it lives: by this thread, and by the threads of a call that this
// thread makes. The newest one counts alone. Costs nothing where nothing overflows.
class OverflowCounter {
 public:
  OverflowCounter() noexcept;
  ~OverflowCounter();
  OverflowCounter(const OverflowCounter&) = delete;
  OverflowCounter& operator=(const OverflowCounter&) = delete;

  Overflows total() const;

  void add(const Overflows& more);  // from any thread

 private:
  OverflowCounter* outer_;
  mutable std::mutex mutex_;
  Overflows total_;
};

}  // namespace ballast
