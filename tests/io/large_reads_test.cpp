// Files that are read in blocks past the page cache, and what the page cache holds of them.
#include "io/large_reads.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "builders/temp_dir.hpp"
#include "io/page_cache.hpp"
#include "support/fake_storages.hpp"

namespace ballast::io {
namespace {

using test::some_bytes;
using test::TempDir;

constexpr std::size_t kSize = (17 << 20) + 123;

std::string write_some(const TempDir& folder) {
  const auto bytes = some_bytes(kSize, 1);
  return folder.write("f", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

UniqueFd opened(const std::string& path) { return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

bool is_range(std::span<const std::byte> got, std::size_t offset) {
  static const auto expected = some_bytes(kSize, 1);
  return std::equal(got.begin(), got.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
}

TEST(LargeReads, GivesAnyRangeToAnyNumberOfThreads) {
  const TempDir folder;
  const UniqueFd file = opened(write_some(folder));
  for (const bool is_direct : {false, true}) {
    const UniqueFd own = reopened(file.get());
    if (is_direct) bypass_page_cache(own.get());
    LargeReads reads(4);
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&reads, &own, seed] {
        std::mt19937 random(seed);
        for (int i = 0; i < 20; ++i) {
          const std::size_t offset = random() % kSize;
          const std::size_t size = std::min<std::size_t>(random() % (6 << 20), kSize - offset);
          std::vector<std::byte> memory(size + 4096);
          std::span<std::byte> out(memory);
          if (i % 2 == 0) out = out.subspan((offset - reinterpret_cast<std::uintptr_t>(memory.data())) % 4096);
          out = out.first(size);
          EXPECT_TRUE(reads.read_at(own.get(), offset, out));
          EXPECT_TRUE(is_range(out, offset)) << out.size() << " bytes at " << offset;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(LargeReads, FailsPastTheEndAndIfNothingCanBeRead) {
  const TempDir folder;
  const UniqueFd file = opened(write_some(folder));
  LargeReads reads(1);
  std::vector<std::byte> out(2);
  EXPECT_TRUE(reads.read_at(file.get(), kSize - 2, out));
  EXPECT_FALSE(reads.read_at(file.get(), kSize - 1, out));
  EXPECT_FALSE(reads.read_at(-7, 0, out));
  EXPECT_FALSE(reopened(-7));
}

TEST(PageCache, KnowsWhatWasJustWrittenAndWhatWasDropped) {
  const TempDir folder;
  const UniqueFd file = opened(write_some(folder));
  const UniqueFd own = reopened(file.get());
  EXPECT_FALSE(is_cold(own.get(), 0, kSize));
  EXPECT_FALSE(is_cold(-7, 0, kSize)) << "what does not say is not cold";
  fsync(file.get());
  if (posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) != 0 || is_on_network(file.get())) return;
  std::byte byte;
  const iovec one = {&byte, 1};
  if (preadv2(file.get(), &one, 1, 9 << 20, RWF_NOWAIT) >= 0) GTEST_SKIP() << "nothing is dropped here";
  if (errno != EAGAIN) GTEST_SKIP() << "the file system does not say what it holds";
  EXPECT_TRUE(is_cold(own.get(), 0, kSize));
}

}  // namespace
}  // namespace ballast::io
