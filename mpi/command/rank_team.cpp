#include "rank_team.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ballast::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kWarning = 1;  // the tag
constexpr auto kBetweenLooks = 20ms;
// A signal reaches all ranks, which then tell each other that they stop. A rank that does not answer for so long is
// gone; mpirun kills those that remain a second after it has asked them to end.
constexpr auto kPatience = 400ms;
constexpr std::uint64_t kMostBytesARound = std::uint64_t{1} << 30;  // of all ranks together: counts of MPI are int

// Exchanges take microseconds, or as long as the slowest rank works.
void pause(Clock::duration waited) {
  if (waited < 200us) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min<Clock::duration>(waited / 4, 5ms));
}

}  // namespace

RankTeam::RankTeam(MPI_Comm comm, std::function<bool()> is_stopped) : all_(comm), is_stopped_(std::move(is_stopped)) {}

void RankTeam::serve(const std::function<void()>& work) {
  std::thread verb([&] {
    work();
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    wake_.notify_one();
  });
  std::unique_lock lock(mutex_);
  while (!is_done_) {
    wake_.wait_for(lock, kBetweenLooks, [this] { return is_done_ || asked_ != nullptr; });
    const auto asked = asked_;
    lock.unlock();
    Messages answer;
    std::exception_ptr failure;
    try {
      pass_warnings();
      if (asked != nullptr) answer = exchange_messages(*asked);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (asked == nullptr) continue;  // what cannot be looked for now shows at the next exchange
    if (failure != nullptr) broken_by_ = failure;
    answer_ = std::move(answer);
    failure_ = failure;
    asked_ = nullptr;
    answered_.notify_one();
  }
  lock.unlock();
  verb.join();
}

Team::Messages RankTeam::swap(std::span<const std::byte> mine) {
  std::unique_lock lock(mutex_);
  asked_ = &mine;
  wake_.notify_one();
  answered_.wait(lock, [this] { return asked_ == nullptr; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return std::move(answer_);
}

// Sends on that this rank has failed, and hears of others. Such messages are so small that nobody waits for them.
void RankTeam::pass_warnings() {
  if (const std::uint64_t own = own_warning_; own > passed_warning_) {
    passed_warning_ = own;
    for (unsigned to = 0; to < size(); ++to) {
      if (to == rank()) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Isend(&passed_warning_, 1, MPI_UINT64_T, static_cast<int>(to), kWarning, all_.handle(), &request),
            "sending");
      sending_.push_back(request);
    }
  }
  for (int is_there = 1; is_there != 0;) {
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kWarning, all_.handle(), &is_there, &status), "looking for messages");
    if (is_there == 0) break;
    std::uint64_t failure = 0;
    check(MPI_Recv(&failure, 1, MPI_UINT64_T, status.MPI_SOURCE, kWarning, all_.handle(), MPI_STATUS_IGNORE),
          "receiving");
    newest_warning_ = std::max<std::uint64_t>(newest_warning_, failure);
  }
}

void RankTeam::wait_for(MPI_Request& request) {
  const auto begin = Clock::now();
  Clock::time_point stopped{};
  for (int is_complete = 0;;) {
    check(MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE), "exchanging");
    if (is_complete != 0) return;
    pass_warnings();
    const auto now = Clock::now();
    if (stopped == Clock::time_point{} && is_stopped_()) stopped = now;
    if (stopped != Clock::time_point{} && now - stopped > kPatience)
      throw Error(Errc::cancelled, "another process of this job is gone");
    pause(now - begin);
  }
}

// First the sizes, then the messages, in rounds whose counts fit into an int.
Team::Messages RankTeam::exchange_messages(std::span<const std::byte> mine) {
  const std::uint64_t own = mine.size(), most = std::max<std::uint64_t>(kMostBytesARound / size(), 1);
  std::vector<std::uint64_t> sizes(size());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&own, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, all_.handle(), &request), "exchanging");
  wait_for(request);

  Messages messages(size());
  const std::uint64_t longest = *std::ranges::max_element(sizes);
  for (std::uint64_t done = 0; done < longest; done += most) {
    std::vector<int> counts, begins;
    int total = 0;
    for (const std::uint64_t bytes : sizes) {
      counts.push_back(static_cast<int>(std::min(bytes - std::min(bytes, done), most)));
      begins.push_back(std::exchange(total, total + counts.back()));
    }
    std::vector<std::byte> round(static_cast<std::size_t>(total));
    const std::byte* from = mine.data() + std::min(own, done);
    check(MPI_Iallgatherv(from, counts[rank()], MPI_BYTE, round.data(), counts.data(), begins.data(), MPI_BYTE,
                          all_.handle(), &request),
          "exchanging");
    wait_for(request);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto part =
          std::span(round).subspan(static_cast<std::size_t>(begins[i]), static_cast<std::size_t>(counts[i]));
      messages[i].insert(messages[i].end(), part.begin(), part.end());
    }
  }
  return messages;
}

}  // namespace ballast::mpi
