// The squares of the largest singular values of a matrix that comes in panels of rows, by BLAS and LAPACK, on the
// calling thread alone.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace ballast::kernels {

// Gives all rows of a matrix, in order, a few whole rows at a time. It is called several times.
using RowPanels = std::function<void(const std::function<void(std::span<const float>)>& look)>;

struct Spectrum {
  std::vector<double> squares;  // of singular values, the largest first
  bool is_complete = false;     // there are no others
};

// How many singular values are found if there are more.
inline constexpr std::size_t kSpectrumSize = 128;

// All singular values if a dimension is at most 512 and that takes no more than some 16 MiB. Else the function iterates
// a random subspace that always begins the same, reads the matrix three times and holds 1200 bytes for each column; it
// finds at most kSpectrumSize values, of which the last are a little too small. All values must be finite. Throws
// Errc::unsupported if LAPACK gives up, or is not there.
Spectrum spectrum(std::size_t rows, std::size_t columns, const RowPanels& panels);

}  // namespace ballast::kernels
