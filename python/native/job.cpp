#include "job.hpp"
#include "core/wanted.hpp"
#include "gil.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace py = pybind11;

namespace ballast::python {
namespace {

using namespace std::chrono_literals;

// Ctrl-C is looked for this often, and progress is told this often.
constexpr auto kBetweenLooks = 20ms;

// What the two threads tell each other.
class Shared {
 public:
  bool report(const ProgressState& state) {
    const std::lock_guard lock(mutex_);
    if (state.phase.empty()) return !is_cancelled_;  // only a question
    phase_ = state.phase;
    done_bytes_ = state.done_bytes;
    total_bytes_ = state.total_bytes;
    has_news_ = true;
    return !is_cancelled_;
  }

  void finish(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    is_finished_ = true;
    changed_.notify_one();
  }

  bool wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kBetweenLooks, [&] { return is_finished_; });
    return is_finished_;
  }

  bool is_wanted() {
    const std::lock_guard lock(mutex_);
    return !is_cancelled_;
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }

  // Calls `progress` if there is something new; the lock is not held meanwhile.
  void tell(const py::object& progress) {
    if (progress.is_none()) return;
    std::string phase;
    std::uint64_t done = 0, total = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!has_news_) return;
      has_news_ = false;
      phase = phase_;
      done = done_bytes_;
      total = total_bytes_;
    }
    const py::object answer = progress(phase, done, total);
    if (answer.ptr() == Py_False) cancel();
  }

  const std::exception_ptr& error() const { return error_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string phase_;
  std::uint64_t done_bytes_ = 0, total_bytes_ = 0;
  bool has_news_ = false, is_finished_ = false, is_cancelled_ = false;
  std::exception_ptr error_;
};

}  // namespace

void run_job(const py::object& progress, const std::function<void(const Progress&)>& job) {
  Shared shared;
  std::thread thread([&] {
    const Question is_wanted = [&] { return shared.is_wanted(); };
    const WantedWhile wanted(&is_wanted);
    try {
      job([&](const ProgressState& state) { return shared.report(state); });
      shared.finish(nullptr);
    } catch (...) {
      shared.finish(std::current_exception());
    }
  });

  std::exception_ptr raised;  // by Ctrl-C, or by the callable
  for (bool is_finished = false; !is_finished;) {
    {
      const Unlocked unlocked;
      is_finished = shared.wait();
    }
    if (raised) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      shared.tell(progress);
    } catch (...) {
      raised = std::current_exception();
      shared.cancel();
    }
  }
  {
    const Unlocked unlocked;
    thread.join();
  }
  if (raised) std::rethrow_exception(raised);
  if (shared.error()) std::rethrow_exception(shared.error());
}

}  // namespace ballast::python
