// RankTeam: the ranks of a communicator as a team.
//
// MPI lets only the thread that started it make calls. So a verb runs in another thread, and the thread of MPI serves
// it: it carries out the exchanges that the verb asks for, and looks some fifty times a second whether another rank has
// failed, or whether somebody wants this process to end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include <ballast/team.hpp>

#include "../communicator.hpp"

namespace ballast::mpi {

class RankTeam final : public Team {
 public:
  // Collective over `comm`. `is_stopped` says whether a signal wants this process to end; any thread asks it.
  RankTeam(MPI_Comm comm, std::function<bool()> is_stopped);

  // Runs `work` in a thread of its own, and serves it until it ends.
  void serve(const std::function<void()>& work);

  // Why an exchange was abandoned: another rank is gone, or MPI failed. Then the other ranks may wait for this one, and
  // MPI cannot be ended in an orderly way. Null if none was.
  const std::exception_ptr& broken_by() const noexcept { return broken_by_; }

  unsigned rank() const noexcept override { return all_.rank(); }
  unsigned size() const noexcept override { return all_.size(); }

 private:
  // Called by the verb's thread.
  Messages swap(std::span<const std::byte> mine) override;
  void warn(std::uint64_t failure) noexcept override { own_warning_ = failure; }
  // A signal counts like the failure of another rank: nothing that is under way is wanted any more.
  std::uint64_t newest_warning() const noexcept override { return is_stopped_() ? UINT64_MAX : newest_warning_.load(); }

  // Called by the thread of MPI.
  void pass_warnings();
  void wait_for(MPI_Request& request);
  Messages exchange_messages(std::span<const std::byte> mine);

  Communicator all_;
  std::function<bool()> is_stopped_;

  std::mutex mutex_;  // guards the members that follow
  std::condition_variable wake_, answered_;
  const std::span<const std::byte>* asked_ = nullptr;  // what is to be sent to all
  Messages answer_;
  std::exception_ptr failure_;
  bool is_done_ = false;

  std::atomic<std::uint64_t> own_warning_ = 0, newest_warning_ = 0;
  std::uint64_t passed_warning_ = 0;
  std::vector<MPI_Request> sending_;
  std::exception_ptr broken_by_;
};

}  // namespace ballast::mpi
