// Scratch: memory for the time of a call, with undefined bytes. A thread keeps a few blocks for its next calls, because
// fresh memory comes from the system page by page: that took half of the time of unpacking codes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace ballast {

class Scratch {
 public:
  explicit Scratch(std::size_t size);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  std::span<std::byte> bytes() const noexcept { return {block_.memory.get(), size_}; }

  static constexpr std::size_t kMostKeptBytes = std::size_t{2} << 20;  // of a block; a larger one is given back

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory{};
    std::size_t size = 0;
  };
  static constexpr std::size_t kKept = 4;
  static thread_local Block kept_[kKept];

  Block block_;
  std::size_t size_;
};

}  // namespace ballast
