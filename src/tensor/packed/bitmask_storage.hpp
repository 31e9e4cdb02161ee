// A matrix of which only the values that are not zero are kept, with a bit for each element that says whether it is
// one.
#pragma once

#include <optional>
#include <string>

#include <ballast/tensor.hpp>

namespace ballast {

// `values` has the values row by row; `mask` is [rows, ceil(columns / 8)] of U8, the lowest bit of a byte first. Lazy:
// the bits are counted by prepare() or when the first byte is read, and 8 bytes a row are kept. If there are not as
// many values as bits, or if a bit lies behind the last column, that is Errc::malformed, naming the weight; so are
// offsets (a vector of I64) that are not those of the first values of the rows.
Tensor scattered(const Tensor& values, const Tensor& mask, const Shape& shape, const std::string& weight,
                 const std::optional<Tensor>& offsets = {});

}  // namespace ballast
