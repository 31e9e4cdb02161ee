#include "core/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <ballast/error.hpp>

#include "core/wanted.hpp"
#include "support/expect_error.hpp"

namespace ballast {
namespace {

class ThreadPoolOfAnySize : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolOfAnySize, testing::Values(1u, 2u, 3u, 8u));

TEST_P(ThreadPoolOfAnySize, DoesEveryItemOnceAndCanBeUsedAgain) {
  ThreadPool pool(GetParam());
  for (const std::size_t count : {0u, 1u, 2u, 7u, 1000u}) {
    std::vector<std::atomic<int>> done(count);
    pool.run(count, [&](std::size_t item, unsigned worker) {
      EXPECT_LT(worker, pool.size());
      ++done[item];
    });
    EXPECT_TRUE(std::ranges::all_of(done, [](const auto& times) { return times == 1; })) << count;
  }
}

TEST_P(ThreadPoolOfAnySize, RethrowsTheExceptionOfTheLowestItemAndStopsStarting) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 200; ++round) {
    std::atomic<std::size_t> started = 0;
    try {
      pool.run(100'000, [&](std::size_t item, unsigned) {
        ++started;
        if (item >= 10) throw std::runtime_error(std::to_string(item));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "10");
    }
    EXPECT_LE(started, 10 + 2 * pool.size());
  }
  std::atomic<int> done = 0;
  pool.run(5, [&](std::size_t, unsigned) { ++done; });
  EXPECT_EQ(done, 5) << "it works on after a failure";
}

TEST_P(ThreadPoolOfAnySize, NestsWithoutDeadlock) {
  ThreadPool pool(GetParam());
  std::atomic<int> done = 0;
  pool.run(8, [&](std::size_t, unsigned) {
    pool.run(8, [&](std::size_t, unsigned) { pool.run(2, [&](std::size_t, unsigned) { ++done; }); });
  });
  EXPECT_EQ(done, 128);
}

TEST_P(ThreadPoolOfAnySize, CarriesAnExceptionOutOfANestedRun) {
  ThreadPool pool(GetParam());
  const auto fail = [](std::size_t, unsigned) { throw std::out_of_range("inner"); };
  EXPECT_THROW(pool.run(4, [&](std::size_t, unsigned) { pool.run(4, fail); }), std::out_of_range);
}

TEST_P(ThreadPoolOfAnySize, ServesSeveralCallersAtOnce) {
  ThreadPool pool(GetParam());
  std::atomic<int> done = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) pool.run(20, [&](std::size_t, unsigned) { ++done; });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(done, 4 * 50 * 20);
}

TEST(ThreadPool, OfOneWorksOnTheCallingThreadInOrder) {
  ThreadPool pool(1);
  EXPECT_EQ(pool.size(), 1u);
  std::vector<std::size_t> order;
  pool.run(5, [&](std::size_t item, unsigned worker) {
    EXPECT_EQ(worker, 0u);
    order.push_back(item);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(ThreadPool, UsesAllItsThreads) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  // Every item waits until three threads are here, so one thread alone would never finish.
  pool.run(3, [&](std::size_t, unsigned) {
    const auto count = [&] {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      return threads.size();
    };
    while (count() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_EQ(threads.size(), 3u);
}

TEST(ThreadPool, GivesAWorkerNumberToOneCallAtATime) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(pool.size());
  pool.run(2000, [&](std::size_t, unsigned worker) {
    EXPECT_EQ(++inside[worker], 1);
    --inside[worker];
  });
}

TEST(AvailableThreads, HonoursTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (unsigned cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_threads(), 1u);
  EXPECT_EQ(ThreadPool().size(), 1u);
  sched_setaffinity(0, sizeof before, &before);
}

// The thread that waits is the only one that can hear Ctrl-C, and it waits for another.
TEST(ThreadPool, AsksWhoeverWaitsWhetherTheWorkOfOthersIsStillWanted) {
  ThreadPool pool(2);
  std::atomic<bool> other_waits = false;
  std::atomic<int> asked = 0;
  const auto waiter = std::this_thread::get_id();
  const Question question = [&] { return std::this_thread::get_id() != waiter || !other_waits || ++asked == 0; };
  const WantedWhile wanted(&question);
  const auto work = [&](std::size_t, unsigned worker) {
    if (worker == 0) {  // done as soon as the other one waits
      while (!other_waits) std::this_thread::yield();
      return;
    }
    other_waits = true;
    while (is_wanted()) std::this_thread::yield();
    throw Error(Errc::cancelled, "no longer wanted");
  };
  EXPECT_ERROR(pool.run(2, work), Errc::cancelled, "no longer wanted");
  EXPECT_GT(asked, 0);
}

TEST(ThreadPool, SaysThatWorkWasUnwantedEvenIfItIsDone) {
  ThreadPool pool(2);
  std::atomic<bool> is_unwanted = false;
  const auto waiter = std::this_thread::get_id();
  const Question question = [&] {
    if (std::this_thread::get_id() != waiter) return true;
    is_unwanted = true;
    return false;
  };
  const WantedWhile wanted(&question);
  std::atomic<bool> has_begun = false;
  const auto work = [&](std::size_t, unsigned worker) {
    if (worker == 0) {
      while (!has_begun) std::this_thread::yield();
      return;
    }
    has_begun = true;
    while (!is_unwanted) is_wanted();  // hears it, and finishes all the same
  };
  EXPECT_ERROR(pool.run(2, work), Errc::cancelled, "cancelled");
}

TEST(SplitByBytes, CutsOnGranules) {
  using Ranges = std::vector<ByteRange>;
  EXPECT_EQ(split_by_bytes(0, 1, 10), Ranges{});
  EXPECT_EQ(split_by_bytes(25, 1, 10), (Ranges{{0, 10}, {10, 10}, {20, 5}}));
  EXPECT_EQ(split_by_bytes(20, 1, 10), (Ranges{{0, 10}, {10, 10}}));
  EXPECT_EQ(split_by_bytes(25, 4, 10), (Ranges{{0, 8}, {8, 8}, {16, 8}, {24, 1}}));
  EXPECT_EQ(split_by_bytes(25, 16, 10), (Ranges{{0, 16}, {16, 9}}));
  EXPECT_EQ(split_by_bytes(5, 100, 10), (Ranges{{0, 5}}));
  EXPECT_EQ(split_by_bytes(3, 0, 0), (Ranges{{0, 1}, {1, 1}, {2, 1}}));
}

}  // namespace
}  // namespace ballast
