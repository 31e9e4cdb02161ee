// LargeReads: files in aligned blocks of 1 MiB, read past the page cache if the file system allows it.
//
// A disk is slow because of the number of requests, not because of the bytes, and a cold map costs one request for
// every few pages. Blocks that were read stay for a while, because tensors do not end at block boundaries: small
// tensors that lie together are read together. Large ranges only pass through a block: the few blocks stay in the
// processor's cache, and copying from there costs less than having the disk write to memory far away. Thread-safe; as
// many requests are under way as threads read at a time.
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
  explicit LargeReads(unsigned threads);  // how many threads read at a time, at the most
  ~LargeReads();
  LargeReads(const LargeReads&) = delete;
  LargeReads& operator=(const LargeReads&) = delete;

  // Fills `out`. Returns false if the file did not give all of it; a plain read will say why. `descriptor` is one of
  // reopened().
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
  std::unique_ptr<std::byte, Free> memory_;  // of all blocks; allocated when the first block is needed
  std::uint64_t clock_ = 0;
};

// Opens the same file again, through a descriptor of its own that still uses the page cache; nothing if the system has
// no descriptor to give.
UniqueFd reopened(int descriptor);

// Makes the descriptor read past the page cache from now on, if the file system can.
void bypass_page_cache(int descriptor);

}  // namespace ballast::io
