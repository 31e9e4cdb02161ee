// Team: several processes that do one job together, such as the ranks of an MPI program.
//
// Every member calls the same function with the same arguments, and gives it its own Team (SaveOptions::team, for
// example). The function cuts its work by bytes, largest first, and each member does its share; what one member finds
// out, all get to know; the results are those of one process, to the bit, whatever the size. If a member fails, the
// function throws that member's error in every member.
//
// To bring a team, derive from Team and say how messages travel. A Team belongs to its member, and one thread at a time
// may use it: functions call exchange() from the thread that called them. Only is_given_up() may be called by any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include <ballast/progress.hpp>

namespace ballast {

// What a member has done so far, in bytes.
struct TeamWork {
  std::uint64_t read = 0;      // of tensors, for the share of this member
  std::uint64_t sent = 0;      // to the others
  std::uint64_t received = 0;  // from them
  std::uint64_t written = 0;   // to files
  std::uint64_t held = 0;      // the most in buffers at one time
};

class Team {
 public:
  using Messages = std::vector<std::vector<std::byte>>;

  Team() = default;
  virtual ~Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  virtual unsigned rank() const noexcept = 0;  // of this member, counted from 0
  virtual unsigned size() const noexcept = 0;
  bool is_first() const noexcept { return rank() == 0; }

  // Gives everybody the message of this member, and returns everybody's in the order of rank. All members call it, in
  // the same order. If a member has failed since the last time, throws the error of that member in all of them.
  Messages exchange(std::span<const std::byte> mine);

  // Whether another member has failed, so that the work of this one is not wanted any more.
  bool is_given_up() const noexcept { return size() > 1 && newest_warning() > failures_; }

  void count(const TeamWork& more) noexcept;
  const TeamWork& work() const noexcept { return work_; }

  // A team of one, for whoever has none.
  static Team& alone() noexcept;

 private:
  friend std::exception_ptr attempt_together(Team& team, const std::function<void()>& work);
  friend void together(Team& team, const std::function<void()>& work);
  std::exception_ptr agree_on(std::exception_ptr own);
  std::exception_ptr failure_in(Messages& frames, const std::exception_ptr& own);

  // Carries messages, whatever is in them, as exchange() says. Throws if a member is gone for good; then this team is
  // of no use any more.
  virtual Messages swap(std::span<const std::byte> mine) = 0;

  // Tells the others at once, without waiting for them, that this member has failed: they need not finish their share
  // before they hear of it. Failures are counted from 1, and newest_warning() is the largest number that arrived, from
  // any member. Without these two, a failure is heard of at the next exchange.
  virtual void warn(std::uint64_t /*failure*/) noexcept {}
  virtual std::uint64_t newest_warning() const noexcept { return 0; }

  std::uint64_t failures_ = 0;   // that all members have heard of
  std::exception_ptr agreed_{};  // the last of them, until it has left together()
  unsigned depth_ = 0;           // of calls of together()
  TeamWork work_;
};

// Carries out `work`, which all members call and in which they may exchange messages: it succeeds for all of them, or
// throws the same error in all of them. That is the error of the first member that did not merely stop for another's
// sake. Calls may be nested.
void together(Team& team, const std::function<void()>& work);

// The same, but returns the error that all members agree on, or null, for a job that goes on without that work.
std::exception_ptr attempt_together(Team& team, const std::function<void()>& work);

inline Team& team_of(Team* team) noexcept { return team == nullptr ? Team::alone() : *team; }

// What a member tells its own caller of the progress of all: the members have equal shares, so the sum is about as many
// times what this one has done. It says stop if another member has failed.
Progress progress_of(Team& team, Progress progress);

}  // namespace ballast
