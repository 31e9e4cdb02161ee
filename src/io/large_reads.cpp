#include "io/large_reads.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "core/huge_pages.hpp"

namespace ballast::io {
namespace {

// A multiple of every disk's own block, and in memory of a huge page.
constexpr std::size_t kBlockBytes = std::size_t{4} << 20;
constexpr std::size_t kAlignment = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;
constexpr unsigned kSpareBlocks = 4;  // beside one for each thread: neighbours are read at about the same time

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using BlockMemory = std::unique_ptr<std::byte, Free>;

BlockMemory block_memory() {
  void* const memory = std::aligned_alloc(kAlignment, kBlockBytes);
  if (memory == nullptr) throw std::bad_alloc();
  prefer_huge_pages(memory, kBlockBytes);
  return BlockMemory(static_cast<std::byte*>(memory));
}

// How many bytes came: fewer at the end of the file, none where it cannot be read.
std::size_t read_block(int descriptor, std::uint64_t offset, std::byte* to) {
  const auto read = [&] {
    return retry([&] { return pread(descriptor, to, kBlockBytes, static_cast<off_t>(offset)); });
  };
  ssize_t n = read();
  if (n < 0 && errno == EINVAL) {  // a file system that took O_DIRECT and does not mean it
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_DIRECT);
    n = read();
  }
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

bool lies_as_in_file(std::uint64_t offset, std::span<const std::byte> out) {
  constexpr std::size_t kWorthARequest = std::size_t{1} << 20;
  return out.size() >= kWorthARequest && (reinterpret_cast<std::uintptr_t>(out.data()) - offset) % kPage == 0;
}

// One request for whole pages of the file: those that the range has only a part of go beside it.
bool read_straight(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  alignas(kPage) std::array<std::byte, kPage> first, last;
  const std::size_t before = offset % kPage;  // in the first page, in front of the range
  const std::size_t of_first = kPage - before, of_last = (offset + out.size()) % kPage;
  const std::array<iovec, 3> places = {
      iovec{first.data(), kPage},
      iovec{out.data() + of_first, out.size() - of_first - of_last},
      iovec{last.data(), of_last == 0 ? 0 : kPage},
  };
  const ssize_t n =
      retry([&] { return preadv(descriptor, places.data(), places.size(), static_cast<off_t>(offset - before)); });
  if (n < 0 || static_cast<std::size_t>(n) < before + out.size()) return false;
  std::memcpy(out.data(), first.data() + before, of_first);
  std::memcpy(out.data() + out.size() - of_last, last.data(), of_last);
  return true;
}

}  // namespace

struct LargeReads::Block {
  Key key{-1, 0};
  BlockMemory memory;
  std::size_t size = 0;
  std::uint64_t last_use = 0;
  unsigned users = 0;
  bool is_loading = false;
};

LargeReads::LargeReads(unsigned threads) : blocks_(threads + kSpareBlocks) {}
LargeReads::~LargeReads() = default;

bool LargeReads::read_at(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  return (lies_as_in_file(offset, out) && read_straight(descriptor, offset, out)) ||
         read_from_blocks(descriptor, offset, out);
}

bool LargeReads::read_from_blocks(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t first = static_cast<std::size_t>(offset % kBlockBytes);
    const std::size_t size = std::min(out.size(), kBlockBytes - first);
    Block& block = acquire({descriptor, offset / kBlockBytes});
    const bool is_there = first + size <= block.size;
    if (is_there) std::memcpy(out.data(), block.memory.get() + first, size);
    release(block);
    if (!is_there) return false;
    out = out.subspan(size);
    offset += size;
  }
  return true;
}

LargeReads::Block* LargeReads::oldest_free() {
  Block* oldest = nullptr;
  for (Block& block : blocks_) {
    if (block.users == 0 && (oldest == nullptr || block.last_use < oldest->last_use)) oldest = &block;
  }
  return oldest;
}

// A thread holds one block at a time, and there are more blocks than threads: somebody always goes on.
LargeReads::Block& LargeReads::acquire(Key key) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = std::ranges::find(blocks_, key, &Block::key);
    if (found != blocks_.end()) {
      ++found->users;
      changed_.wait(lock, [&] { return !found->is_loading; });
      return *found;
    }
    Block* const block = oldest_free();
    if (block == nullptr) {
      changed_.wait(lock);
      continue;
    }
    if (!block->memory) block->memory = block_memory();
    block->key = key;
    block->users = 1;
    block->is_loading = true;
    lock.unlock();
    const std::size_t size = read_block(key.descriptor, key.number * kBlockBytes, block->memory.get());
    lock.lock();
    block->size = size;
    block->is_loading = false;
    changed_.notify_all();
    return *block;
  }
}

void LargeReads::release(Block& block) {
  const std::lock_guard lock(mutex_);
  block.last_use = ++clock_;
  if (--block.users == 0) changed_.notify_all();
}

UniqueFd reopened(int descriptor) {
  // By way of /proc it is the same file, whatever has its name by now.
  return UniqueFd(
      retry([&] { return open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_RDONLY | O_CLOEXEC); }));
}

void bypass_page_cache(int descriptor) { fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_DIRECT); }

}  // namespace ballast::io
