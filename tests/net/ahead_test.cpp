#include "net/ahead.hpp"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace ballast::net {
namespace {

std::byte byte_at(std::uint64_t offset) { return static_cast<std::byte>(offset * 7 + offset / 256); }

// Brings bytes that tell where they come from, and counts.
struct Server {
  std::atomic<unsigned> calls = 0;
  std::atomic<std::uint64_t> bytes = 0;
  bool is_broken = false;

  Ahead::FetchAll fetch() {
    return [this](std::span<Fetch> fetches) {
      ++calls;
      if (is_broken) throw Error(Errc::io, "broken");
      for (Fetch& fetch : fetches) {
        for (std::size_t i = 0; i < fetch.out.size(); ++i) fetch.out[i] = byte_at(fetch.wanted.offset + i);
        bytes += fetch.out.size();
        fetch.received = fetch.out.size();
        fetch.took(fetch.out.size());
      }
    };
  }
};

std::uint64_t taken(Ahead& ahead, Server& server, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> out(size);
  const ReadRange rest = ahead.take({offset, out}, server.fetch());
  const std::uint64_t got = size - rest.out.size();
  EXPECT_EQ(rest.offset, offset + got);
  for (std::uint64_t i = 0; i < got; ++i) EXPECT_EQ(out[i], byte_at(offset + i));
  return got;
}

void announce(Ahead& ahead, std::vector<ByteRange> ranges) { ahead.announce(ranges); }

TEST(Ahead, BringsEverythingThatWasAnnouncedAtTheFirstRead) {
  Ahead ahead(100, 10'000);
  Server server;
  announce(ahead, {{0, 250}, {1'000, 50}});
  EXPECT_EQ(server.calls, 0u);
  EXPECT_EQ(taken(ahead, server, 10, 20), 20u);
  EXPECT_EQ(taken(ahead, server, 1'000, 50), 50u);
  EXPECT_EQ(taken(ahead, server, 30, 220), 220u);
  EXPECT_EQ(server.calls, 1u);
  EXPECT_EQ(server.bytes, 300u);
}

TEST(Ahead, LeavesWhatWasNotAnnounced) {
  Ahead ahead(100, 10'000);
  Server server;
  announce(ahead, {{100, 100}});
  EXPECT_EQ(taken(ahead, server, 50, 100), 0u);
  EXPECT_EQ(taken(ahead, server, 150, 100), 50u);
}

TEST(Ahead, AsksOnceForWhatIsAnnouncedTwice) {
  Ahead ahead(64, 10'000);
  Server server;
  announce(ahead, {{0, 100}});
  announce(ahead, {{50, 100}, {0, 10}});
  EXPECT_EQ(taken(ahead, server, 0, 150), 150u);
  EXPECT_EQ(server.bytes, 150u);
}

TEST(Ahead, ForgetsWhatWasRead) {
  Ahead ahead(100, 150);
  Server server;
  for (std::uint64_t at = 0; at < 10'000; at += 100) {
    announce(ahead, {{at, 100}});
    EXPECT_EQ(taken(ahead, server, at, 100), 100u);
  }
  EXPECT_EQ(taken(ahead, server, 0, 100), 0u);
}

TEST(Ahead, KeepsItsBudget) {
  Ahead ahead(100, 1'000);
  Server server;
  announce(ahead, {{0, 100'000}});
  EXPECT_EQ(taken(ahead, server, 0, 1), 1u);
  EXPECT_EQ(server.bytes, 1'000u);
  announce(ahead, {{50'000, 500}});  // what was announced before and is not read makes room
  EXPECT_EQ(taken(ahead, server, 50'000, 500), 500u);
}

TEST(Ahead, GivesAnErrorToWhoeverAsksAndTriesAgain) {
  Ahead ahead(100, 1'000);
  Server server;
  server.is_broken = true;
  announce(ahead, {{0, 100}});
  EXPECT_ERROR(taken(ahead, server, 0, 10), Errc::io, "broken");
  server.is_broken = false;
  EXPECT_EQ(taken(ahead, server, 0, 10), 0u);  // not announced any more
  announce(ahead, {{0, 100}});
  EXPECT_EQ(taken(ahead, server, 0, 10), 10u);
}

TEST(Ahead, ServesSeveralThreads) {
  Ahead ahead(64, 1 << 20);
  Server server;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t at = (i * 4 + t) * 100;
        announce(ahead, {{at, 100}, {at + 100, 100}});
        EXPECT_EQ(taken(ahead, server, at, 100), 100u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ballast::net
