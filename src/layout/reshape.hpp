// Dimensions of tensors cut, joined, swapped and stacked, lazily. All throw Errc::mismatch if the shape does not fit.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::names {

using Dims = std::vector<std::uint64_t>;

Dims dims_of(const Tensor& tensor);
std::uint64_t rows_of(const Tensor& tensor);  // 0 without dimensions

// The same values in another shape, whatever the strides.
Tensor shaped(const Tensor& tensor, Dims dims);
// The dimension `axis` as several dimensions.
Tensor unfolded(const Tensor& tensor, std::size_t axis, const Dims& into);
// Dimensions `axis` to `axis + count - 1` as one.
Tensor folded(const Tensor& tensor, std::size_t axis, std::size_t count);
Tensor swapped(const Tensor& tensor, std::size_t a, std::size_t b);
// Reorders [a, b, rest] along one dimension to [b, a, rest].
Tensor turned(const Tensor& tensor, std::size_t axis, const Dims& into);

std::size_t last_but_one(const Tensor& tensor);  // the dimension of the rows of matrices
Tensor transposed_each(const Tensor& tensor);    // every matrix of a stack

Tensor part_of(const Tensor& tensor, std::size_t axis, std::uint64_t first, std::uint64_t count);
// The even and the odd positions of a dimension, and the two together again.
std::vector<Tensor> alternating(const Tensor& tensor, std::size_t axis);
Tensor alternated(const Tensor& even, const Tensor& odd, std::size_t axis);

// `axis` is the new dimension.
Tensor stacked(const std::vector<Tensor>& parts, std::size_t axis);
std::vector<Tensor> unstacked(const Tensor& tensor);

// a / b. `what` is the noun of the error's sentence, if b does not divide a.
std::uint64_t divided(std::uint64_t a, std::uint64_t b, std::string_view what);

}  // namespace ballast::names
