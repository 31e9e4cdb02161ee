// Blocks made into something else as they are read: ggml's into floats, a big-endian file's into little-endian ones.
//
// Any range of the result is made from just the blocks that it touches, in place where the blocks are mapped and the
// result is wanted. Nothing is kept.
#pragma once

#include <optional>

#include <ballast/tensor.hpp>

namespace ballast {

// Elements as F32, F16 or BF16, with ggml's own bits. `scale` is the factor that NVFP4 keeps in a tensor of its own,
// "NAME.scale": one number, or one for each index of the first dimension. Throws Errc::unsupported for a type that does
// not decode, and Errc::mismatch for a scale of another shape.
StoragePtr decoded_storage(Tensor blocks, DType out, std::optional<Tensor> scale = {});

// The same as a tensor; types that are no blocks are cast.
Tensor decoded(const Tensor& tensor, DType out, std::optional<Tensor> scale = {});

// What a big-endian file has, as the little-endian bytes that every other storage gives: elements turned round, and in
// blocks every field that is wider than a byte.
StoragePtr swapped_storage(Tensor source);

}  // namespace ballast
