// The header of a NumPy file, format version 1.0 (2.0 if the header is longer than 64 KiB).
//
//   "\x93NUMPY", major, minor      8 bytes
//   the header's length            u16, or u32 in version 2
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//   spaces, then a line end, so that the data begin at a multiple of 64
#pragma once

#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::npy {

// Throws Errc::unsupported for a dtype that NumPy has no name for.
std::vector<std::byte> encode_header(const Tensor& tensor);

}  // namespace ballast::npy
