// Communicator: the ranks of a job, and what all of them do together.
//
// A communicator owns a duplicate of the one that it was made from, so messages of ours never meet those of the caller.
// Making, moving into nothing, and freeing one are collective: every rank does them in the same order. Only the thread
// that made a communicator may use it, so MPI_THREAD_FUNNELED is enough.
//
// Counts of MPI are `int`. Everything here is sent in pieces, so that no count comes near that.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ballast/error.hpp>

namespace ballast::mpi {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kMostBytesAMessage = std::uint64_t{64} << 20;

// Throws Errc::io with MPI's own words if `code` is not MPI_SUCCESS. `what` is what was tried: "sending".
void check(int code, const char* what);

// What the work throws; null if nothing.
template <class Work>
std::exception_ptr failure_of(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

class Communicator {
 public:
  // Collective over `comm`. Throws Errc::invalid_argument if MPI is not running, or if this thread may not call it.
  explicit Communicator(MPI_Comm comm);
  ~Communicator();
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm handle() const noexcept { return comm_; }
  unsigned rank() const noexcept { return rank_; }
  unsigned size() const noexcept { return size_; }
  bool may_use_threads() const noexcept { return may_use_threads_; }  // whether MPI knows that there are others

  // The ranks that can share memory with this one, in the order of their ranks here. Collective.
  Communicator node() const;

  void barrier() const;

  // Every rank gives some bytes, of any size, and gets those of all ranks, by rank. Collective.
  std::vector<Bytes> exchange(std::span<const std::byte> mine) const;

  // The bytes of `root`, on every rank. Collective.
  Bytes broadcast(Bytes bytes, unsigned root = 0) const;

  // The largest of the numbers that the ranks give. Collective.
  std::uint64_t largest(std::uint64_t mine) const;

  // Every rank says how its work ended. If it failed on some rank, all ranks throw the failure of the first such rank,
  // which says which rank that was: no rank waits for one that has given up. Collective.
  void agree_or_throw(const std::exception_ptr& mine) const;
  void agree_or_throw(const std::optional<Error>& mine) const;

  // Does this rank's part of a phase, and then agrees. Nothing in `work` may be collective.
  template <class Work>
  void together(Work&& work) const {
    agree_or_throw(failure_of(std::forward<Work>(work)));
  }

  // Does work in which ranks also exchange messages outside of together(). Whatever is thrown that the ranks have not
  // agreed on, a fault of MPI or too little memory, leaves the others waiting for a message that will never come: it
  // ends the job (MPI_Abort), with a sentence on stderr.
  template <class Work>
  auto or_end_the_job(Work&& work) const {
    has_agreed_ = false;
    try {
      return std::forward<Work>(work)();
    } catch (...) {
      if (!has_agreed_) end_the_job(std::current_exception());
      throw;
    }
  }
  [[noreturn]] void end_the_job(const std::exception_ptr& cause) const noexcept;

 private:
  Communicator(MPI_Comm owned, bool may_use_threads);
  void free() noexcept;
  void broadcast_into(std::span<std::byte> bytes, unsigned root) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  unsigned rank_ = 0, size_ = 1;
  bool may_use_threads_ = false;
  mutable bool has_agreed_ = false;  // whether the ranks threw a failure together
};

}  // namespace ballast::mpi
