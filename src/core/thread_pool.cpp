#include "core/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

#include <ballast/error.hpp>

#include "core/overflow_counter.hpp"
#include "core/read_counter.hpp"
#include "core/wanted.hpp"

namespace ballast {

struct ThreadPool::Job {
  std::size_t count;
  const std::function<void(std::size_t, unsigned)>& work;
  OverflowCounter* counter = current_overflow_counter();  // the counters of the thread that waits for the work
  ReadCounter* reads = current_read_counter();
  const Question* waiter = current_question();  // whether that thread wants the work, which it asks, too
  std::atomic<bool> is_asked{false}, is_unwanted{false};
  const Question question = [this] {
    is_asked = true;
    return !is_unwanted && (waiter == nullptr || (*waiter)());
  };

  std::atomic<std::size_t> next{0};
  std::mutex mutex{};  // guards the two members below
  std::size_t failed_item = std::numeric_limits<std::size_t>::max();
  std::exception_ptr failure{};

  void work_off(unsigned worker) noexcept {
    const OverflowsCountedFor caller(counter);
    const ReadsCountedFor reader(reads);
    const WantedWhile wanted(&question);
    for (std::size_t item = claim(); item < count; item = claim()) {
      try {
        work(item, worker);
      } catch (...) {
        fail(item);
      }
    }
  }

  std::size_t claim() noexcept { return next.fetch_add(1, std::memory_order_relaxed); }

  void fail(std::size_t item) noexcept {
    next.store(count, std::memory_order_relaxed);  // no worker claims another item
    const std::lock_guard lock(mutex);
    if (item >= failed_item) return;
    failed_item = item;
    failure = std::current_exception();
  }
};

ThreadPool::ThreadPool(unsigned threads) {
  constexpr unsigned kMost = 1024;  // a mistyped number should not take the machine down
  const unsigned wanted = std::min(threads != 0 ? threads : available_threads(), kMost);
  threads_.reserve(wanted - 1);
  try {
    for (unsigned worker = 1; worker < wanted; ++worker)
      threads_.emplace_back(&ThreadPool::work_until_stopped, this, worker);
  } catch (const std::system_error&) {
    // The system refuses to start more threads. Fewer threads are slower, not wrong.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::run(std::size_t count, const std::function<void(std::size_t, unsigned)>& work) {
  Job job{.count = count, .work = work};
  if (threads_.empty() || count <= 1 || is_running_.exchange(true)) {
    job.work_off(0);
  } else {
    run_with_workers(job);
    is_running_ = false;
  }
  if (job.failure) std::rethrow_exception(job.failure);
  if (job.is_unwanted) throw Error(Errc::cancelled, "cancelled");  // whoever said so must hear of it
}

void ThreadPool::run_with_workers(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    ++generation_;
  }
  wake_.notify_all();
  job.work_off(0);

  std::unique_lock lock(mutex_);
  job_ = nullptr;  // a worker that has not woken up by now is not needed
  constexpr auto kBetweenQuestions = std::chrono::milliseconds(20);
  while (!idle_.wait_for(lock, kBetweenQuestions, [this] { return busy_ == 0; })) {
    lock.unlock();
    if (job.is_asked && !is_wanted()) job.is_unwanted = true;
    lock.lock();
  }
}

void ThreadPool::work_until_stopped(unsigned worker) {
  std::uint64_t last_joined = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || (job_ != nullptr && generation_ != last_joined); });
    if (stopping_) return;
    last_joined = generation_;
    Job& job = *job_;
    ++busy_;
    lock.unlock();
    job.work_off(worker);
    lock.lock();
    if (--busy_ == 0) idle_.notify_one();
  }
}

namespace {

// "200000 100000" in cpu.max allows two CPUs' worth of time in each period; "max 100000" sets no limit.
unsigned cpus_of_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::numeric_limits<unsigned>::max();
  const double cpus = std::strtod(quota.c_str(), nullptr) / period;
  return static_cast<unsigned>(std::clamp(cpus + 0.999, 1.0, 1e6));
}

unsigned cpus_of_affinity() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::thread::hardware_concurrency();  // over 1024 CPUs
  return static_cast<unsigned>(CPU_COUNT(&set));
}

}  // namespace

unsigned available_threads() { return std::max(1u, std::min(cpus_of_affinity(), cpus_of_quota())); }

std::vector<ByteRange> split_by_bytes(std::uint64_t total_bytes, std::uint64_t granule, std::uint64_t target_bytes) {
  granule = std::max<std::uint64_t>(granule, 1);
  const std::uint64_t piece = std::max(granule, target_bytes - target_bytes % granule);

  std::vector<ByteRange> ranges;
  ranges.reserve(static_cast<std::size_t>(total_bytes / piece + (total_bytes % piece != 0 ? 1 : 0)));
  for (std::uint64_t done = 0; done < total_bytes; done += ranges.back().size)
    ranges.push_back({.offset = done, .size = std::min(piece, total_bytes - done)});
  return ranges;
}

}  // namespace ballast
