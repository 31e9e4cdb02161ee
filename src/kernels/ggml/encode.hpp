// Floats to ggml's block types, with the bytes that ggml's own quantizer gives, with an importance matrix and without.
//
// Each block depends on its own elements and nothing else (on those of its row if there is importance), so several
// threads may encode ranges of whole blocks (of whole rows), in any order. The caller's thread is in the default
// floating-point environment (nearest, subnormals kept).
//
// No block type can hold a value that is not finite: NaN is encoded as zero, and an infinity as the largest float.
// Finite values that are too large for the scale of a block are encoded as ggml encodes them: the scale becomes
// infinite, or the search for a scale finds none and the block is zeros, and all of its values are lost; NVFP4
// saturates. If the behaviour of ggml's C is undefined (all numbers of a block are near the smallest ones there are, so
// that its scale is zero in F16), our codes decode to the same zeros.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <ballast/dtype.hpp>
#include <ballast/overflows.hpp>

namespace ballast::kernels {

// True for every block type except Q8_1, which is never stored.
bool can_encode(DType type) noexcept;

// True for the types that are encoded with importance only: IQ1_S, IQ2_XXS, IQ2_XS.
bool needs_importance(DType type) noexcept;

// False if a type has the same bytes with importance and without.
bool takes_importance(DType type) noexcept;

// True if a block depends on all elements of its row when there is importance: Q4_0, Q4_1, Q5_0, Q5_1. Of other types,
// a part of a row may be encoded as if it were a row.
bool importance_needs_rows(DType type) noexcept;

// `values` are whole blocks; `blocks` has room for exactly as many, and needs no alignment. Throws Errc::unsupported
// for a type that cannot be encoded, and Errc::invalid_argument if the sizes do not fit or the type needs importance.
// Returns the finite values that are too large for the scale of their block.
Overflows encode_blocks(DType type, std::span<const float> values, std::span<std::byte> blocks);

// The same for whole rows. `importance` has a weight for each element of a row, which is a positive finite number or
// zero; with other weights the blocks mean nothing.
Overflows encode_rows(DType type, std::span<const float> values, std::span<const float> importance,
                      std::span<std::byte> blocks);

// The index of the first value that is NaN or infinite. `values` are whole blocks of any type.
std::optional<std::size_t> find_not_finite(std::span<const float> values);

}  // namespace ballast::kernels
