// The vector code behind decode_blocks, a family of block types a file, compiled once for each instruction set and
// chosen when the program runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

// Decodes `count` whole blocks to F32. `out` needs no alignment unless it is streamed: then it is aligned to
// kStreamAlignment, and the caller calls finish_streaming(). The type belongs to the family.
using DecodeFamily = void (*)(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream);

inline constexpr std::size_t kStreamAlignment = 64;

void decode_classic(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream);
void decode_k(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream);
void decode_iq(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream);
void decode_small(DType type, const std::uint8_t* in, std::size_t count, float* out, bool stream);

}  // namespace ballast::kernels
