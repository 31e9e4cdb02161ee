// Overflows: finite values that did not fit the type that they were written in.
//
// A cast rounds to nearest, and rounding is never counted, not even if it gives zero. A finite value beyond the range
// of the type is counted: in F16, BF16 and F32 it becomes infinite, in an F8 type it becomes the largest number. In a
// block of ggml whose scale does not reach so far, it may become anything, and so may the values beside it.
//
// Overflows are plain values. A counter belongs to the thread that made it; any thread may call its add() and total().
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include <ballast/dtype.hpp>

namespace ballast {

struct Overflows {
  std::uint64_t count = 0;
  double largest = 0;            // the overflow that is farthest from zero
  std::optional<DType> dtype{};  // that it did not fit, which need not be the last dtype that a value is cast to

  void add(const Overflows& more) noexcept;
};

// Counts, as long as it lives, the overflows of everything that this thread reads, and of what other threads read for
// calls that this thread makes. If a thread has several counters, only the newest counts; destroy them on that thread,
// the newest first. A counter costs nothing if nothing overflows.
class OverflowCounter {
 public:
  OverflowCounter() noexcept;
  ~OverflowCounter();
  OverflowCounter(const OverflowCounter&) = delete;
  OverflowCounter& operator=(const OverflowCounter&) = delete;

  Overflows total() const;

  void add(const Overflows& more);  // from any thread, as total()

 private:
  OverflowCounter* outer_;
  mutable std::mutex mutex_;
  Overflows total_;
};

}  // namespace ballast
