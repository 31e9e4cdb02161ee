// A range of one dimension of a tensor, as a view.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ballast/tensor.hpp>

namespace ballast {

inline Tensor dimension_range(const Tensor& tensor, std::size_t axis, std::uint64_t first, std::uint64_t count) {
  Slice slice(axis, SliceIndex::range({}, {}));
  slice.push_back(SliceIndex::range(static_cast<std::int64_t>(first), static_cast<std::int64_t>(first + count)));
  return tensor.slice(slice);
}

}  // namespace ballast
