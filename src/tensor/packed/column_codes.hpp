// Codes that lie in words one below the other, as a matrix of bytes: compressed-tensors keeps zero points so.
#pragma once

#include <ballast/tensor.hpp>

namespace ballast {

// `words` is a matrix of words of 32 bits. Each of its columns is a little-endian stream of codes of `bits` each; the
// result, [rows, columns] of U8, has the first `rows` codes of each. The caller has checked that there are as many.
// If `in_word` is not 0, it is no stream: each word has so many whole codes, and a gap. Lazy: 32 rows, or those of a
// word, are made together.
Tensor column_codes(const Tensor& words, std::uint64_t rows, unsigned bits, unsigned in_word = 0);

}  // namespace ballast
