// Ranges of bytes: those that are meant, and those that are wanted.
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

// Bytes from `offset` on, and where they are to be put. The memory is the caller's.
struct ReadRange {
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

}  // namespace ballast
