// Memory of our own for tensors: aligned to 64 bytes, in huge pages if it is large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ballast {

// The memory is not zeroed. Page faults, not copying, are most of the cost of filling fresh memory, so large blocks are
// aligned to 2 MiB and ask for huge pages.
class OwnedMemory {
 public:
  explicit OwnedMemory(std::uint64_t size_bytes);

  std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  std::shared_ptr<std::byte> share() const noexcept { return data_; }

 private:
  std::shared_ptr<std::byte> data_;
  std::size_t size_;
};

}  // namespace ballast
