// How the memory for buffers is divided.
#pragma once

#include <algorithm>
#include <cstdint>

#include "communicator.hpp"

namespace ballast::mpi {

inline constexpr std::uint64_t kLeastPieceBytes = 64 << 10;

// There are two pieces that are read, a message that is packed, and one that is unpacked.
inline std::uint64_t piece_bytes(std::uint64_t memory_bytes) {
  return std::clamp(memory_bytes / 4, kLeastPieceBytes, kMostBytesAMessage);
}

}  // namespace ballast::mpi
