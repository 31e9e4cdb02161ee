// Codes of a few bits, which quantized weights are kept in, unpacked and turned into floats.
//
// No pointer needs to be aligned, and no two spans overlap. The functions own nothing, and none of them fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

// Unpacks codes of `bits` each, 1 to 8, from a little-endian stream: code i lies at the bits [i * bits, (i + 1) * bits)
// of the bytes. `in` has all bits of the codes; what lies behind it is not read.
void unpack_codes(unsigned bits, std::span<const std::byte> in, std::span<std::uint8_t> codes) noexcept;

// The same for codes of 4 bits of which the first of each byte lies in its high half.
void unpack_high_halves_first(std::span<const std::byte> in, std::span<std::uint8_t> codes) noexcept;

// out[i] = (in[i] >> shift) & mask, for shift < 8.
void bits_of_bytes(unsigned shift, unsigned mask, std::span<const std::byte> in, std::uint8_t* out) noexcept;

// out[i] = table[codes[i] % 16]
using CodeTable = std::array<float, 16>;
void look_up(const CodeTable& table, std::span<const std::uint8_t> codes, float* out) noexcept;

}  // namespace ballast::kernels
