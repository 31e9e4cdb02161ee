// A two-dimensional slice of a tensor in the size of a picture.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::cli {

// What of a tensor: rows and columns along two of its dimensions, at one index of each other. Of a vector, the rows are
// one.
struct Region {
  std::size_t row_axis = 0, column_axis = 0;
  bool has_rows = true;           // false for a vector
  std::vector<std::uint64_t> at;  // an index for each dimension; those of the two axes do not count
  std::uint64_t row_begin = 0, row_end = 0, column_begin = 0, column_end = 0;
};

enum class Cells : std::uint8_t { extreme, mean, rms };

struct HeatMap {
  std::uint64_t rows = 0, columns = 0;
  std::vector<float> cells;  // row after row; NaN where a value is not finite
  bool is_partial = false;   // not all values were read: there are too many
};

// At most `height` by `width` cells. Cell i of n has the values from i·count/n to (i+1)·count/n. keep_going() is asked
// now and then; Errc::cancelled if it says no. Errc::invalid_argument if the region is not in the tensor.
HeatMap heat_map(const Tensor& tensor, const Region& region, Cells what, std::uint64_t height, std::uint64_t width,
                 const std::function<bool()>& keep_going);

}  // namespace ballast::cli
