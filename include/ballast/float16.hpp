// The 16-bit floats that C++20 has no name for: plain values that convert to float exactly. Any thread may use them.
#pragma once

#include <bit>
#include <cstdint>

namespace ballast {

struct bfloat16 {
  std::uint16_t bits;
  operator float() const noexcept { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

struct float16 {
  std::uint16_t bits;
  operator float() const noexcept {
    const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
    const std::uint32_t magnitude = bits & 0x7FFFu;
    if (magnitude >= 0x7C00) return std::bit_cast<float>(sign | 0x7F80'0000 | (magnitude & 0x3FF) << 13);
    // After the shift, the number is 2^112 times too small; the product is exact, for subnormals too.
    const float widened = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(widened) | sign);
  }
};

}  // namespace ballast
