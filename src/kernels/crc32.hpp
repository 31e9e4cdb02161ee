// CRC-32 as zip uses it, by carry-less multiplication where the processor has it, in pieces that several threads make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

// Goes on from the checksum of what came before; 0 is that of nothing.
std::uint32_t crc32(std::uint32_t before, std::span<const std::byte> bytes) noexcept;

// The checksum of two pieces one after the other. Takes time logarithmic in the size of the second.
std::uint32_t combine_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) noexcept;

}  // namespace ballast::kernels
