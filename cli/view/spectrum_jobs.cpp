#include "spectrum_jobs.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <ballast/error.hpp>

namespace ballast::cli {
namespace {

constexpr std::chrono::milliseconds kPause{100};

// What the thread and whoever waits for it share.
struct SpectrumJob {
  std::atomic<std::uint64_t> done = 0, total = 1;
  std::atomic<bool> is_wanted = true;
  bool is_over = false;  // under the mutex of the turn, as is what follows
  SingularValues found;
  std::exception_ptr problem;
};

void ask(const Progress& progress, const SpectrumJob& job) {
  if (progress && !progress({"reading", job.done, job.total})) throw Error(Errc::cancelled, "cancelled");
}

}  // namespace

struct SpectrumJobs::Turn {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_busy = false;

  // The lock, once `is_so`; until then the progress is asked, without it.
  template <class Condition>
  std::unique_lock<std::mutex> lock_when(Condition is_so, const Progress& progress, const SpectrumJob& job) {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kPause, is_so)) {
      lock.unlock();
      ask(progress, job);
      lock.lock();
    }
    return lock;
  }
};

SpectrumJobs::SpectrumJobs() : turn_(std::make_shared<Turn>()) {}

SingularValues SpectrumJobs::compute(const Tensor& matrix, const Progress& progress) {
  const auto job = std::make_shared<SpectrumJob>();
  const auto turn = turn_;
  auto begin = turn->lock_when([&] { return !turn->is_busy; }, progress, *job);
  std::thread([job, turn, matrix] {
    try {
      job->found = singular_values(matrix, [&](const ProgressState& state) {
        job->done = state.done_bytes;
        job->total = state.total_bytes;
        return job->is_wanted.load();
      });
    } catch (...) {
      job->problem = std::current_exception();
    }
    const std::lock_guard lock(turn->mutex);
    job->is_over = true;
    turn->is_busy = false;
    turn->changed.notify_all();
  }).detach();
  turn->is_busy = true;
  begin.unlock();
  try {
    const auto over = turn->lock_when([&] { return job->is_over; }, progress, *job);
  } catch (...) {
    job->is_wanted = false;
    throw;
  }
  if (job->problem) std::rethrow_exception(job->problem);
  return std::move(job->found);
}

bool SpectrumJobs::is_busy() const {
  const std::lock_guard lock(turn_->mutex);
  return turn_->is_busy;
}

void SpectrumJobs::wait() const {
  std::unique_lock lock(turn_->mutex);
  turn_->changed.wait(lock, [&] { return !turn_->is_busy; });
}

}  // namespace ballast::cli
