// Which row of a grid stands for eight or four levels: the row itself if the grid has it, else one of the rows near it.
//
// The levels of a row are packed into a code, as in grid_codes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/dtype.hpp>

namespace ballast::kernels {

class Grid {
 public:
  // `levels` is 3 or 8. The rows near a code are those at its `distances` smallest distances from the grid.
  Grid(std::span<const std::uint16_t> rows, unsigned levels, int distances);

  // Each level of a code is less than the number of levels.
  bool has(std::size_t code) const { return (entries_[code] & 255) == 0; }

  // The number of the row. The grid has the code.
  unsigned index(std::size_t code) const { return entries_[code] >> 8; }

  // The codes of the rows near a code that the grid does not have: the nearest first, in the order of the grid if they
  // are equally near. The last one is repeated, so that vectors of eight can be read.
  std::span<const std::uint16_t> near(std::size_t code) const {
    return std::span(lists_).subspan(std::size_t{entries_[code] >> 8} * 8, std::size_t{entries_[code] & 255} * 8);
  }

 private:
  // The low 8 bits are the length of a list and the others its beginning, both in eights; if the length is zero, the
  // others are the number of the row.
  std::vector<std::uint32_t> entries_;
  std::vector<std::uint16_t> lists_;
};

// The grid of an IQ type below four bits. It is made when it is first needed, in some milliseconds; any thread may ask.
const Grid& grid_of(DType type);

}  // namespace ballast::kernels
