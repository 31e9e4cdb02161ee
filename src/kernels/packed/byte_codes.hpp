// Codes that lie in bytes, as floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ballast::kernels {

// out[i] = ((in[i] >> shift) & mask) - center, for shift < 8. `in` and `out` have as many elements.
struct ByteField {
  unsigned shift = 0, mask = 0xFF;
  float center = 0;
};
void byte_fields(const ByteField& field, std::span<const std::byte> in, float* out) noexcept;

// The numbers that bytes stand for as F8_E4M3, with the bits that cast() gives.
void e4m3_numbers(std::span<const std::byte> in, float* out) noexcept;

}  // namespace ballast::kernels
