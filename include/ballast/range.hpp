// Ranges of bytes, and ranges with the memory to read them into. Plain values; they own no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast {

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Bytes from `offset` on, and the memory that they are read into, which belongs to the caller.
struct ReadRange {
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

}  // namespace ballast
