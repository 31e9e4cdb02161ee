// What stands between the brackets of t[...]: integers, slices, ... and None, as NumPy has them.
#pragma once

#include <pybind11/pybind11.h>

#include <ballast/tensor.hpp>

namespace ballast::python {

// A view; reads nothing. Raises IndexError for an index that is not there, and TypeError for lists and masks.
Tensor indexed(const Tensor& tensor, pybind11::handle index);

}  // namespace ballast::python
