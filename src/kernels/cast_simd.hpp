// The casts that are worth vector code, compiled once for each instruction set and chosen when the program runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ballast::kernels {

enum class SimdCast : std::uint8_t {
  f32_to_f16,
  f32_to_bf16,
  f32_to_f8_e4m3,
  f32_to_f8_e5m2,
  f32_to_f8_e4m3fnuz,
  f32_to_f8_e5m2fnuz,
  f16_to_f32,
  f16_to_bf16,
  bf16_to_f32,
  bf16_to_f16,
};

// Outputs of at least this many bytes are written around the cache, which saves reading bytes that will be overwritten.
// Measured on hot buffers with a last-level cache of 32 MiB: streaming reaches 1.2 to 1.3 times the speed far above
// this size, is about even here, and takes BF16 to F32 down to 0.6 times if everything would have stayed in the cache.
inline constexpr std::size_t kStreamCastFromBytes = std::size_t{16} << 20;

// Returns whether a finite element may have been too large for the target. False is certain; an element that is
// infinite or NaN may also give true.
bool simd_cast(SimdCast which, const std::byte* in, std::byte* out, std::size_t count) noexcept;

}  // namespace ballast::kernels
