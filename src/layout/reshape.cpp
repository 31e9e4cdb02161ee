#include "layout/reshape.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "layout/dimension_range.hpp"
#include "layout/names_values.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast::names {
namespace {

using Tensors = std::vector<Tensor>;

Tensor with_new_dimension(const Tensor& tensor, std::size_t axis) {
  Dims dims = dims_of(tensor);
  if (axis > dims.size())
    throw Error(Errc::mismatch, fmt::format("{} has no dimension {}", to_string(tensor.shape()), axis));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return shaped(tensor, dims);
}

}  // namespace

Dims dims_of(const Tensor& tensor) { return {tensor.shape().begin(), tensor.shape().end()}; }

Tensor shaped(const Tensor& tensor, Dims dims) {
  const Shape shape(dims);
  return tensor.is_contiguous() ? tensor.reshape(shape) : in_order(tensor, shape);
}

Tensor unfolded(const Tensor& tensor, std::size_t axis, const Dims& into) {
  Dims dims = dims_of(tensor);
  std::uint64_t product = 1;
  bool fits = axis < dims.size();
  for (const std::uint64_t size : into) fits = fits && !__builtin_mul_overflow(product, size, &product);
  if (!fits || product != dims[axis] || product == 0) {
    throw Error(Errc::mismatch,
                fmt::format("{} cannot be cut into {}", to_string(tensor.shape()), to_string(Shape(into))))
        .hint("do the numbers in config.json belong to this model?");
  }
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), into.begin(), into.end());
  return shaped(tensor, dims);
}

Tensor folded(const Tensor& tensor, std::size_t axis, std::size_t count) {
  Dims dims = dims_of(tensor);
  const auto first = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  const std::uint64_t product = std::accumulate(first, last, std::uint64_t{1}, std::multiplies<>());
  dims.erase(first + 1, last);
  dims[axis] = product;
  return shaped(tensor, dims);
}

Tensor swapped(const Tensor& tensor, std::size_t a, std::size_t b) {
  std::vector<std::size_t> order(tensor.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::max(a, b) >= order.size())
    throw Error(Errc::mismatch, fmt::format("{} has too few dimensions", to_string(tensor.shape())));
  std::swap(order[a], order[b]);
  return tensor.permute(order);
}

std::size_t last_but_one(const Tensor& tensor) {
  if (tensor.rank() >= 2) return tensor.rank() - 2;
  throw Error(Errc::mismatch, fmt::format("{} has no rows", to_string(tensor.shape())));
}

Tensor transposed_each(const Tensor& tensor) {
  const std::size_t rows = last_but_one(tensor);
  const Tensor view = swapped(tensor, rows, rows + 1);
  return in_order(view, view.shape());
}

Tensor turned(const Tensor& tensor, std::size_t axis, const Dims& into) {
  const Tensor view = swapped(unfolded(tensor, axis, into), axis, axis + 1);
  return in_order(view, tensor.shape());
}

Tensor part_of(const Tensor& tensor, std::size_t axis, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t size = axis < tensor.rank() ? tensor.shape()[axis] : 0;
  if (count > size || first > size - count)
    throw Error(Errc::mismatch, fmt::format("{} is too small", to_string(tensor.shape())));
  return dimension_range(tensor, axis, first, count);
}

std::uint64_t divided(std::uint64_t a, std::uint64_t b, std::string_view what) {
  if (b != 0 && a % b == 0) return a / b;
  throw Error(Errc::mismatch, fmt::format("{} {} are no multiple of {}", a, what, b));
}

std::uint64_t rows_of(const Tensor& tensor) { return tensor.rank() == 0 ? 0 : tensor.shape()[0]; }

Tensors alternating(const Tensor& tensor, std::size_t axis) {
  divided(axis < tensor.rank() ? tensor.shape()[axis] : 1, 2, "rows");
  Slice slice(axis, SliceIndex::range({}, {}));
  const auto every_second = [&](std::int64_t first) {
    Slice at = slice;
    at.push_back(SliceIndex::range(first, {}, 2));
    const Tensor view = tensor.slice(at);
    return in_order(view, view.shape());
  };
  return {every_second(0), every_second(1)};
}

Tensor alternated(const Tensor& even, const Tensor& odd, std::size_t axis) {
  return folded(concatenated({with_new_dimension(even, axis + 1), with_new_dimension(odd, axis + 1)}, axis + 1), axis,
                2);
}

Tensor stacked(const Tensors& parts, std::size_t axis) {
  Tensors thick;
  for (const Tensor& part : parts) thick.push_back(with_new_dimension(part, axis));
  return concatenated(std::move(thick), axis);
}

Tensors unstacked(const Tensor& tensor) {
  Tensors parts;
  for (std::uint64_t i = 0; i < rows_of(tensor); ++i)
    parts.push_back(tensor.slice({SliceIndex::at(static_cast<std::int64_t>(i))}));
  return parts;
}

}  // namespace ballast::names
