// Blocks that are converted as they are read: ggml's into floats, those of a big-endian file into little-endian ones.
//
// Any range of the result is made from just the blocks that it touches, without a copy in between if the blocks are
// mapped. Nothing is kept.
#pragma once

#include <optional>

#include <ballast/tensor.hpp>

namespace ballast {

// Elements as F32, F16 or BF16, with ggml's own bits. `scale` is the factor that NVFP4 keeps in a tensor of its own,
// "NAME.scale": one number, or one for each index of the first dimension. Throws Errc::unsupported for a type that
// cannot be decoded, and Errc::mismatch for a scale of another shape.
StoragePtr decoded_storage(Tensor blocks, DType out, std::optional<Tensor> scale = {});

// The same as a tensor; types that are not blocks are cast.
Tensor decoded(const Tensor& tensor, DType out, std::optional<Tensor> scale = {});

// The elements of a big-endian file, as the little-endian bytes that every other storage gives: the bytes of each
// element are reversed, and in blocks those of every number that is wider than a byte.
StoragePtr swapped_storage(Tensor source);

}  // namespace ballast
