// ThreadPool: runs the same work on many items with a few threads. split_by_bytes() cuts bytes into such items.
//
// The thread that calls run() works too, so a pool of one starts no threads at all. run() may be called from any
// thread, even from inside another run(): a pool that is busy does the new work on the calling thread, so nothing can
// deadlock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <ballast/range.hpp>

namespace ballast {

class ThreadPool {
 public:
  // 0 means as many threads as this process may use.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const noexcept { return static_cast<unsigned>(threads_.size()) + 1; }

  // Calls work(item, worker) once for each item below `count` and returns when all items are done. Items are started in
  // ascending order. `worker` is below size(), and no two calls have the same `worker` at the same time, so it can
  // select a scratch buffer.
  //
  // While this thread waits for others whose work asks whether it is wanted (core/wanted.hpp), it asks its own
  // question.
  //
  // After an exception no further item is started, and the exception of the lowest item is rethrown. Because items
  // start in order, that is the same exception for any number of threads.
  void run(std::size_t count, const std::function<void(std::size_t item, unsigned worker)>& work);

 private:
  struct Job;

  void run_with_workers(Job& job);
  void work_until_stopped(unsigned worker);

  std::vector<std::thread> threads_;
  std::atomic<bool> is_running_ = false;  // not a mutex: a nested run() would find it locked by its own thread

  std::mutex mutex_;  // guards the members that follow
  std::condition_variable wake_, idle_;
  Job* job_ = nullptr;
  std::uint64_t generation_ = 0;  // counts jobs, so that a worker joins each job once
  unsigned busy_ = 0;             // workers inside the current job
  bool stopping_ = false;
};

// The number of threads that can run at once. Affinity, cpusets and a container's CPU quota are honoured.
unsigned available_threads();

// Cuts [0, total_bytes) into ranges of about `target_bytes`. Every range but the last is a whole number of granules,
// and no range is empty. A granule larger than the target is not cut.
std::vector<ByteRange> split_by_bytes(std::uint64_t total_bytes, std::uint64_t granule, std::uint64_t target_bytes);

}  // namespace ballast
