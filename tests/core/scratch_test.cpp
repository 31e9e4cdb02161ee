// Memory for the time of a call: blocks are used again, and never by two calls at once.
#include "core/scratch.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace ballast {
namespace {

TEST(Scratch, IsUsedAgainByTheNextCall) {
  const std::byte* first = nullptr;
  {
    const Scratch scratch(100'000);
    first = scratch.bytes().data();
  }
  const Scratch smaller(90'000);
  EXPECT_EQ(smaller.bytes().data(), first);
  EXPECT_EQ(smaller.bytes().size(), 90'000u);
}

TEST(Scratch, OfCallsInsideEachOtherIsNotShared) {
  const Scratch outer(1000);
  std::memset(outer.bytes().data(), 1, 1000);
  for (int i = 0; i < 10; ++i) {
    const Scratch inner(1000), other(500);
    std::memset(inner.bytes().data(), 2, 1000);
    std::memset(other.bytes().data(), 3, 500);
    for (const std::byte byte : outer.bytes()) ASSERT_EQ(byte, std::byte{1});
    for (const std::byte byte : inner.bytes()) ASSERT_EQ(byte, std::byte{2});
  }
}

TEST(Scratch, OfManyThreadsIsNotShared) {
  std::vector<std::thread> threads;
  for (unsigned char i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int round = 0; round < 100; ++round) {
        const Scratch scratch(5000);
        std::memset(scratch.bytes().data(), i, 5000);
        for (const std::byte byte : scratch.bytes()) ASSERT_EQ(byte, std::byte{i});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Scratch, MayBeEmpty) { EXPECT_TRUE(Scratch(0).bytes().empty()); }

}  // namespace
}  // namespace ballast
