// Decodes ggml's block types to floats, bit for bit as ggml does.
//
// Blocks are little-endian bytes, whole blocks one after the other; `out` has as many elements. Neither needs to be
// aligned, and the two do not overlap. A type that is not a block type (F16, I8, ...) is cast, so every type of a GGUF
// file decodes here.
//
// A scale may be any number of 16 bits: elements become Inf and NaN by the rules of IEEE 754. The caller's thread is in
// the default floating-point environment (nearest, subnormals kept). The caller applies NVFP4's scale of the whole
// tensor, which is a tensor of its own.
#pragma once

#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

bool can_decode(DType type) noexcept;

// Throws Errc::unsupported for a type that does not decode, and Errc::invalid_argument if the sizes do not fit.
void decode_blocks(DType type, std::span<const std::byte> blocks, std::span<float> out);

// Decodes to F32, F16 or BF16. The two shorter types are rounded to nearest even, as if cast from F32. Returns the
// values that are too large for the type.
Overflows decode_blocks(DType type, std::span<const std::byte> blocks, DType out_type, std::span<std::byte> out);

// Makes the blocks of a big-endian file little-endian in place, or the other way round: swaps the bytes of every field
// that is wider than a byte. If the type is not a block type, swaps the bytes of its elements.
void swap_block_scales(DType type, std::span<std::byte> blocks);

}  // namespace ballast::kernels
