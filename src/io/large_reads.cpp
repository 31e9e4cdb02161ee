#include "io/large_reads.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "core/huge_pages.hpp"

namespace ballast::io {
namespace {

// Bytes of a block: a multiple of every disk's own block, enough for one request, and small enough that all blocks
// together stay in the processor's cache. With 4 MiB, fresh memory for the blocks took a sixth of the time to read a
// file of 256 MiB.
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kAlignment = std::size_t{2} << 20;  // alignment in memory: a huge page
constexpr std::size_t kPage = 4096;
constexpr std::size_t kBlockRoom = kBlockBytes + kPage;       // for a range of a block's size that begins inside a page
constexpr std::size_t kWorthARequest = std::size_t{1} << 20;  // bytes that are worth a request of their own
constexpr unsigned kSpareBlocks = 4;  // beside one block for each thread: neighbours are read at about the same time

// Returns how many bytes were read: fewer at the end of the file, none if it cannot be read.
std::size_t read_block(int descriptor, std::uint64_t offset, std::byte* to, std::size_t size = kBlockBytes) {
  const auto read = [&] { return retry([&] { return pread(descriptor, to, size, static_cast<off_t>(offset)); }); };
  ssize_t n = read();
  if (n < 0 && errno == EINVAL) {  // a file system that accepted O_DIRECT but cannot do it
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_DIRECT);
    n = read();
  }
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

}  // namespace

struct LargeReads::Block {
  Key key{-1, 0};
  std::byte* memory = nullptr;
  std::size_t size = 0;
  std::uint64_t last_use = 0;
  unsigned users = 0;
  bool is_loading = false;
};

LargeReads::LargeReads(unsigned threads) : blocks_(threads + kSpareBlocks) {}
LargeReads::~LargeReads() = default;

void LargeReads::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

// Allocates the memory of all blocks at once, so that they lie in huge pages.
void LargeReads::allocate() {
  const std::size_t size = (blocks_.size() * kBlockRoom + kAlignment - 1) / kAlignment * kAlignment;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  if (!memory_) throw std::bad_alloc();
  prefer_huge_pages(memory_.get(), size);
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].memory = memory_.get() + i * kBlockRoom;
}

bool LargeReads::read_at(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  return out.size() < kWorthARequest ? read_from_blocks(descriptor, offset, out)
                                     : read_through(descriptor, offset, out);
}

// Reads a large range. It is not worth keeping, so a block serves only as a buffer, and need not begin at a multiple of
// the block size.
bool LargeReads::read_through(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  std::unique_lock lock(mutex_);
  Block* block = nullptr;
  changed_.wait(lock, [&] { return (block = take_block()) != nullptr; });
  lock.unlock();
  while (!out.empty()) {
    const std::size_t before = offset % kPage;  // bytes of the page in front of the range
    const std::size_t wanted = (before + out.size() + kPage - 1) / kPage * kPage;
    const std::size_t got = read_block(descriptor, offset - before, block->memory, std::min(wanted, kBlockRoom));
    if (got <= before) break;
    const std::size_t size = std::min(out.size(), got - before);
    std::memcpy(out.data(), block->memory + before, size);
    out = out.subspan(size);
    offset += size;
  }
  release(*block);
  return out.empty();
}

bool LargeReads::read_from_blocks(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t first = static_cast<std::size_t>(offset % kBlockBytes);
    const std::size_t size = std::min(out.size(), kBlockBytes - first);
    Block& block = acquire({descriptor, offset / kBlockBytes});
    const bool is_there = first + size <= block.size;
    if (is_there) std::memcpy(out.data(), block.memory + first, size);
    release(block);
    if (!is_there) return false;
    out = out.subspan(size);
    offset += size;
  }
  return true;
}

// The block that was used longest ago and that nobody uses now; null if all are in use. The block becomes empty and
// belongs to the caller.
LargeReads::Block* LargeReads::take_block() {
  if (!memory_) allocate();
  Block* oldest = nullptr;
  for (Block& block : blocks_) {
    if (block.users == 0 && (oldest == nullptr || block.last_use < oldest->last_use)) oldest = &block;
  }
  if (oldest != nullptr) {
    oldest->key = {-1, 0};
    oldest->users = 1;
  }
  return oldest;
}

// A thread holds one block at a time, and there are more blocks than threads, so some thread can always go on.
LargeReads::Block& LargeReads::acquire(Key key) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = std::ranges::find(blocks_, key, &Block::key);
    if (found != blocks_.end()) {
      ++found->users;
      changed_.wait(lock, [&] { return !found->is_loading; });
      return *found;
    }
    Block* const block = take_block();
    if (block == nullptr) {
      changed_.wait(lock);
      continue;
    }
    block->key = key;
    block->is_loading = true;
    lock.unlock();
    const std::size_t size = read_block(key.descriptor, key.number * kBlockBytes, block->memory);
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
  // The path in /proc leads to the same file, whatever file has its name by now.
  return UniqueFd(
      retry([&] { return open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_RDONLY | O_CLOEXEC); }));
}

void bypass_page_cache(int descriptor) { fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_DIRECT); }

}  // namespace ballast::io
