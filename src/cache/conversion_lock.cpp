#include "cache/conversion_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <ballast/error.hpp>

#include <chrono>
#include <thread>

namespace ballast {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 10ms;
// If a process was forked from the owner of the lock meanwhile, the lock outlives its owner. Nothing else takes this
// long.
constexpr auto kLongestWait = 30min;

}  // namespace

ConversionLock::ConversionLock(const std::string& target, const Progress& progress)
    : fd_(io::retry([&] { return ::open(target.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); })) {
  if (!fd_) throw io::system_error("cannot be opened", errno).in(target);
  const auto start = std::chrono::steady_clock::now();
  // Does not block, because only a signal could end a blocking call.
  while (io::retry([&] { return flock(fd_.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK) return;  // the file system has no locks
    if (progress && !progress({.phase = "waiting for another process"})) throw Error(Errc::cancelled, "cancelled");
    if (std::chrono::steady_clock::now() - start > kLongestWait)
      throw Error(Errc::unsupported, "another process has had it locked for half an hour").in(target);
    std::this_thread::sleep_for(kPause);
  }
}

// Closing the descriptor is not enough: a process that was forked meanwhile has it too.
ConversionLock::~ConversionLock() { flock(fd_.get(), LOCK_UN); }

}  // namespace ballast
