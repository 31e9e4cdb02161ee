// LargeReads: files in aligned blocks of 1 MiB, read past the page cache where the file system allows it.
//
// What a disk is slow at is not bytes but requests, and what a cold map costs is one request for every few pages.
// Blocks that were read stay for a while, since tensors end where they like: small ones that lie together are read
// together. Large ranges only pass through a block: few blocks stay in the processor's cache, and to copy from there
// costs less than to have the disk write to memory far away. Thread-safe; as many threads as read at a time, so many
// requests are under way.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "io/posix.hpp"

namespace ballast::io {

class LargeReads {
 public:
  explicit LargeReads(unsigned threads);  // that read at a time, at the most
  ~LargeReads();
  LargeReads(const LargeReads&) = delete;
  LargeReads& operator=(const LargeReads&) = delete;

  // Fills `out`; false where the file did not give all of it, and a plain read will say why. `descriptor` is one of
  // for_large_reads().
  bool read_at(int descriptor, std::uint64_t offset, std::span<std::byte> out);

 private:
  struct Block;
  struct Key {
    int descriptor;
    std::uint64_t number;
    friend bool operator==(const Key&, const Key&) = default;
  };

  bool read_through(int descriptor, std::uint64_t offset, std::span<std::byte> out);
  bool read_from_blocks(int descriptor, std::uint64_t offset, std::span<std::byte> out);
  Block& acquire(Key key);
  void release(Block& block);
  Block* take_block();
  void allocate();
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  std::mutex mutex_;  // guards the blocks, but not the bytes in them
  std::condition_variable changed_;
  std::vector<Block> blocks_;
  std::unique_ptr<std::byte, Free> memory_;  // of the blocks, when the first is needed
  std::uint64_t clock_ = 0;
};

// The same file through a descriptor of its own, not yet past the page cache; nothing where the system has none to
// give.
UniqueFd reopened(int descriptor);

// From now on past the page cache, if the file system can.
void bypass_page_cache(int descriptor);

}  // namespace ballast::io
