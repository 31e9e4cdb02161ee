// An array's values as NumPy prints them: brackets, aligned columns, and "..." for values that are left out.
#pragma once

#include <cstddef>

#include <ballast/tensor.hpp>

#include "output.hpp"

namespace ballast::cli {

struct ArrayPrintOptions {
  bool full = false;       // if false, more than a thousand values are cut to three at each end of each dimension
  std::size_t width = 75;  // of a line
};

void print_array(Output& out, const Tensor& tensor, const ArrayPrintOptions& options);

}  // namespace ballast::cli
