// How the elements of a strided tensor lie in its storage, counted in units that begin and end on bytes.
//
// A unit is one element, or one block if a dtype packs several elements into bytes that cannot be taken apart (F4: 2 in
// 1 byte, Q4_K: 256 in 144). Blocks lie along the last dimension.
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

struct ElementLayout {
  std::vector<std::uint64_t> shape;        // in units
  std::vector<std::int64_t> byte_strides;  // of each dimension
  std::uint64_t unit_bytes;
  std::uint64_t unit_count;
  std::uint64_t low_bytes;   // how far before the first element the view reaches (negative strides)
  std::uint64_t high_bytes;  // one past the last byte of the view, counted from the first element
};

// Throws Errc::unsupported if the view would cut a block, Errc::malformed if it does not fit 64 bits.
ElementLayout element_layout(DType dtype, const Shape& shape, const Strides& strides);

}  // namespace ballast
