#include "interrupt.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>

#include <ballast/error.hpp>

namespace ballast::cli {
namespace {

// Set by the thread that receives the signal, read by the threads that report progress.
std::atomic<int> caught = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait for a lock");

void remember(int signal) { caught = signal; }

}  // namespace

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: a read that waits for the user must return
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    // Under nohup, or in the background of a script, the caller wants the signal to be ignored.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // A reader that is gone, and a file that reaches the size limit, are errors like any other: the writing code sees and
  // reports them.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

int interrupted() noexcept { return caught; }

void throw_if_interrupted() {
  if (interrupted() != 0) throw Error(Errc::cancelled, "interrupted");
}

void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace ballast::cli
