#include "core/once.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ballast {
namespace {

TEST(Once, IsDoneByOneThreadAndAwaitedByTheOthers) {
  for (int round = 0; round < 100; ++round) {
    Once once;
    int result = 0, times = 0;
    std::atomic<int> right = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        once.run([&] { result = 7 + times++; });
        right += result == 7;
      });
    }
    threads.clear();
    EXPECT_EQ(right, 4);
    EXPECT_EQ(times, 1);
  }
}

TEST(Once, IsTriedAgainAfterAnException) {
  Once once;
  EXPECT_THROW(once.run([] { throw std::runtime_error("no"); }), std::runtime_error);
  int times = 0;
  once.run([&] { ++times; });
  once.run([&] { ++times; });
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace ballast
