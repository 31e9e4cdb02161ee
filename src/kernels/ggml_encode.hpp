// Floats to ggml's block types, with the bytes that ggml's own quantizer gives without an importance matrix.
//
// Each block is a function of its own elements and nothing else: ranges of whole blocks may be encoded by several
// threads, in any order. The caller's thread is in the default floating-point environment (nearest, subnormals kept).
//
// No block type can say what is not finite: NaN is encoded as zero, and an infinity as the largest float. Values that
// are finite, but too large for the scale of a block, are encoded as ggml has them: the scale becomes infinite, or what
// is searched for is not found and the block is zeros, and all of its values are lost; NVFP4 saturates. Where ggml's C
// is undefined (a block of nothing but numbers near the smallest there are, whose scale is zero in F16), our codes
// decode to the same zeros.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

// Every block type but the IQ types below four bits, which are made with an importance matrix, and Q8_1, which is never
// stored.
bool can_encode(DType type) noexcept;

// `values` are whole blocks; `blocks` has room for just as many, and needs no alignment. Throws Errc::unsupported for a
// type that cannot be encoded, and Errc::invalid_argument where the sizes do not fit. Returns the finite values of
// blocks whose scale does not reach so far.
Overflows encode_blocks(DType type, std::span<const float> values, std::span<std::byte> blocks);

// Where the first value is that is NaN or infinite. Whole blocks of any type.
std::optional<std::size_t> find_not_finite(std::span<const float> values);

}  // namespace ballast::kernels
