// The tables behind ggml's block types: the grids of the IQ types, and the values of 4-bit codes and 8-bit scales.
//
// A grid turns an index into 8 small integers (IQ1, IQ2) or 4 (IQ3): a row is one word, and its first integer is the
// lowest byte. The integers of IQ2 and IQ3 are positive, and their signs are stored elsewhere; the integers of IQ1 are
// -1, 0 and 1.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

extern const std::array<std::uint64_t, 256> kIq2XxsGrid;
extern const std::array<std::uint64_t, 512> kIq2XsGrid;
extern const std::array<std::uint64_t, 1024> kIq2SGrid;
extern const std::array<std::uint32_t, 256> kIq3XxsGrid;
extern const std::array<std::uint32_t, 512> kIq3SGrid;
extern const std::array<std::uint64_t, 2048> kIq1SGrid;  // for IQ1_M too

// The rows of a type's grid as codes: the number of each integer's level, in two bits if there are three levels and in
// three bits if there are eight, the first integer lowest.
std::span<const std::uint16_t> grid_codes(DType type) noexcept;

// IQ4_NL and IQ4_XS: denser around zero.
inline constexpr std::array<std::int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                           1,    13,   25,  38,  53,  69,  89,  113};

// MXFP4 and NVFP4: twice the values of E2M1. There is no negative zero.
inline constexpr std::array<std::int8_t, 16> kFp4Values = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// If 7 bits stand for 8 signs (IQ2_XXS, IQ2_XS, IQ3_XXS), the last sign makes the number of minuses even.
constexpr std::uint8_t even_signs(std::uint32_t seven_bits) noexcept {
  return static_cast<std::uint8_t>(seven_bits | (static_cast<unsigned>(std::popcount(seven_bits)) & 1) << 7);
}

// Signs as bytes, 255 for minus: the first table for eight bits, the second for seven bits as above.
extern const std::array<std::uint64_t, 256> kSignBytes;
extern const std::array<std::uint64_t, 128> kEvenSignBytes;

// MXFP4: half of E8M0, 2^(e-128), because the values in the table are doubled. 255 is a number like the others, as in
// ggml.
constexpr float half_e8m0(std::uint8_t e) noexcept {
  return std::bit_cast<float>(e < 2 ? 0x0020'0000U << e : (e - 1U) << 23);
}

// NVFP4: half of E4M3 without its sign bit, which ggml ignores. The code of NaN means zero, but only without that bit.
constexpr float half_ue4m3(std::uint8_t code) noexcept {
  const std::uint32_t exponent = code >> 3 & 15U, mantissa = code & 7U;
  if (code == 0x7F) return 0;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10F;
  return std::bit_cast<float>((exponent - 7 - 1 + 127) << 23 | mantissa << 20);
}
extern const std::array<float, 256> kHalfUe4m3;  // the same as a table

}  // namespace ballast::kernels
