// Reads a NumPy file: the header and nothing else.
#pragma once

#include <cstdint>

#include <ballast/limits.hpp>
#include <ballast/source.hpp>

#include "tensor/numpy_view.hpp"

namespace ballast::npy {

// Magic, version, the length of a Python dict, the dict, then the elements, or a pickle if the elements are objects.
struct Header {
  NumpyType type;
  Shape shape;
  bool is_fortran = false;
  std::uint64_t data_offset = 0;
};

Header read_header(const Source& source, const Limits& limits);

// The one array of the file, which must hold numbers. Bytes must be there for all of it, and none after it.
Tensor read_tensor(const SourcePtr& source, const Header& header);

}  // namespace ballast::npy
