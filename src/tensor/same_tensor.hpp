// Whether two tensors are the same bytes, read in the same way.
#pragma once

#include <ballast/tensor.hpp>

namespace ballast {

inline bool is_same_tensor(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

}  // namespace ballast
