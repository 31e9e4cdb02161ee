// CRC-32 as zip uses it, by carry-less multiplication if the processor has it. Several threads can make the checksums
// of pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

// Continues from `before`, the checksum of the bytes before these; 0 is the checksum of no bytes.
std::uint32_t crc32(std::uint32_t before, std::span<const std::byte> bytes) noexcept;

// The checksum of two pieces one after the other. Takes time logarithmic in the size of the second piece.
std::uint32_t combine_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) noexcept;

}  // namespace ballast::kernels
