// Once: work that the first thread that needs it does, while others wait for it. If the work throws, the next thread
// tries again.
//
// std::call_once promises the same, but may wait for ever after an exception: under ThreadSanitizer, and on some
// processors (GCC's bug 66146).
#pragma once

#include <atomic>
#include <mutex>

namespace ballast {

class Once {
 public:
  template <class Work>
  void run(Work&& work) {
    if (is_done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    work();
    is_done_.store(true, std::memory_order_release);
  }

  bool is_done() const noexcept { return is_done_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::atomic<bool> is_done_ = false;
};

}  // namespace ballast
