// An array's values as NumPy prints them: brackets, aligned columns, and "..." where there are too many.
#pragma once

#include <cstddef>

#include <ballast/tensor.hpp>

#include "output.hpp"

namespace ballast::cli {

struct ArrayPrintOptions {
  bool full = false;       // else more than a thousand values are cut to three at each end of each dimension
  std::size_t width = 75;  // of a line
};

void print_array(Output& out, const Tensor& tensor, const ArrayPrintOptions& options);

}  // namespace ballast::cli
