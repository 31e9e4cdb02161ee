// ThreadTeam: a team whose members are threads of this process.
#pragma once

#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <ballast/team.hpp>

namespace ballast::test {

class ThreadTeam {
 public:
  explicit ThreadTeam(unsigned size) : posted_(size), barrier_(size) {
    for (unsigned rank = 0; rank < size; ++rank) members_.push_back(std::make_unique<Member>(*this, rank));
  }

  // Calls `work` in a thread for each member. What each of them threw, or null.
  [[nodiscard]] std::vector<std::exception_ptr> run(const std::function<void(Team& team)>& work) {
    std::vector<std::exception_ptr> thrown(members_.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          work(*members_[rank]);
        } catch (...) {
          thrown[rank] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return thrown;
  }

  // The same for work that must succeed: throws what the first of them threw.
  void run_all(const std::function<void(Team& team)>& work) {
    for (const std::exception_ptr& thrown : run(work)) {
      if (thrown) std::rethrow_exception(thrown);
    }
  }

  Team& operator[](std::size_t rank) { return *members_[rank]; }

 private:
  class Member final : public Team {
   public:
    Member(ThreadTeam& team, unsigned rank) : team_(team), rank_(rank) {}
    unsigned rank() const noexcept override { return rank_; }
    unsigned size() const noexcept override { return static_cast<unsigned>(team_.posted_.size()); }

   private:
    Messages swap(std::span<const std::byte> mine) override {
      team_.posted_[rank_].assign(mine.begin(), mine.end());
      team_.barrier_.arrive_and_wait();
      Messages all = team_.posted_;
      team_.barrier_.arrive_and_wait();
      return all;
    }
    void warn(std::uint64_t failure) noexcept override { team_.warning_ = failure; }
    std::uint64_t newest_warning() const noexcept override { return team_.warning_; }

    ThreadTeam& team_;
    unsigned rank_;
  };

  Team::Messages posted_;
  std::barrier<> barrier_;
  std::atomic<std::uint64_t> warning_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace ballast::test
