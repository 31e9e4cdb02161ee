// ggml's block types to floats, with ggml's own bits.
//
// Blocks are little-endian bytes, whole blocks one after the other; out has as many elements. Neither needs to be
// aligned, and they do not overlap. The types that are no blocks (F16, I8, ...) are cast, so every type of a GGUF file
// decodes here.
//
// A scale may be anything that 16 bits can say: elements become Inf and NaN by the rules of IEEE 754. The caller's
// thread is in the default floating-point environment (nearest, subnormals kept). NVFP4's scale of the whole tensor,
// which is a tensor of its own, is the caller's business.
#pragma once

#include <cstddef>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

bool can_decode(DType type) noexcept;

// Throws Errc::unsupported for a type that does not decode, and Errc::invalid_argument where the sizes do not fit.
void decode_blocks(DType type, std::span<const std::byte> blocks, std::span<float> out);

// To F32, F16 or BF16. The shorter ones are rounded to nearest even, as if cast from F32; what is too large for them is
// returned.
Overflows decode_blocks(DType type, std::span<const std::byte> blocks, DType out_type, std::span<std::byte> out);

// Blocks of a big-endian file made little-endian where they lie, or the other way round: the bytes of every field that
// is wider than a byte. Of types that are no blocks, the elements.
void swap_block_scales(DType type, std::span<std::byte> blocks);

}  // namespace ballast::kernels
