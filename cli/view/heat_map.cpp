#include "heat_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <ballast/dtype.hpp>
#include <ballast/error.hpp>

namespace ballast::cli {
namespace {

constexpr std::uint64_t kMostValues = std::uint64_t{1} << 26;
constexpr std::uint64_t kPanelValues = std::uint64_t{1} << 18;
constexpr std::uint64_t kMostColumns = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostCells = 2048;  // along one side of the picture

void check_region(const Tensor& tensor, const Region& region) {
  const Shape& shape = tensor.shape();
  const bool has_axes = region.column_axis < shape.rank() && region.at.size() == shape.rank() &&
                        (!region.has_rows || (region.row_axis < shape.rank() && region.row_axis != region.column_axis));
  bool is_inside =
      has_axes && region.column_begin < region.column_end && region.column_end <= shape[region.column_axis];
  if (is_inside && region.has_rows)
    is_inside = region.row_begin < region.row_end && region.row_end <= shape[region.row_axis];
  for (std::size_t i = 0; is_inside && i < shape.rank(); ++i) is_inside = region.at[i] < shape[i];
  if (!is_inside) throw Error(Errc::invalid_argument, "there is no such part of the tensor");
}

SliceIndex range_of(std::uint64_t begin, std::uint64_t end, std::uint64_t step) {
  return SliceIndex::range(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end),
                           static_cast<std::int64_t>(step));
}

// The region as a matrix of F32: not every row and column of it if there are too many.
Tensor matrix_of(const Tensor& tensor, const Region& region, std::uint64_t row_step, std::uint64_t column_step) {
  // Elements that share a byte or a block cannot be sliced.
  const bool is_packed = info(tensor.dtype()).block_elements > 1 || info(tensor.dtype()).kind == DTypeKind::ggml;
  const Tensor whole = is_packed ? tensor.to(DType::f32) : tensor;
  Slice slice;
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    if (i == region.column_axis)
      slice.push_back(range_of(region.column_begin, region.column_end, column_step));
    else if (region.has_rows && i == region.row_axis)
      slice.push_back(range_of(region.row_begin, region.row_end, row_step));
    else
      slice.push_back(SliceIndex::at(static_cast<std::int64_t>(region.at[i])));
  }
  Tensor part = whole.slice(slice);
  if (!region.has_rows) part = part.reshape({1, part.numel()});
  if (region.has_rows && region.column_axis < region.row_axis) part = part.permute(std::array<std::size_t, 2>{1, 0});
  return part.dtype() == DType::f32 ? part : part.to(DType::f32);
}

// The cell of a value, where cell i of n begins at i·count/n.
std::uint64_t cell_of(std::uint64_t value, std::uint64_t count, std::uint64_t cells) {
  return ((value + 1) * cells - 1) / count;
}

// What is known of a cell while its values come. A value that is not finite makes the cell NaN, whatever else is in it.
struct Cell {
  float extreme = 0;
  std::uint32_t count = 0;
  double sum = 0;

  void add(float value, Cells what) {
    if (what == Cells::extreme) {
      const bool is_more = std::fabs(value) > std::fabs(extreme) || !std::isfinite(value);
      if (std::isfinite(extreme) && is_more) extreme = value;
    } else {
      sum += what == Cells::mean ? value : double{value} * value;
      ++count;
    }
  }
  float result(Cells what) const {
    if (what == Cells::extreme) return extreme;
    const double mean = sum / std::max<std::uint32_t>(1, count);
    return static_cast<float>(what == Cells::mean ? mean : std::sqrt(mean));
  }
};

}  // namespace

HeatMap heat_map(const Tensor& tensor, const Region& region, Cells what, std::uint64_t height, std::uint64_t width,
                 const std::function<bool()>& keep_going) {
  check_region(tensor, region);
  const std::uint64_t columns = region.column_end - region.column_begin;
  const std::uint64_t rows = region.has_rows ? region.row_end - region.row_begin : 1;
  HeatMap map;
  map.rows = std::clamp<std::uint64_t>(height, 1, std::min(rows, kMostCells));
  map.columns = std::clamp<std::uint64_t>(width, 1, std::min(columns, kMostCells));
  const std::uint64_t column_step = std::max<std::uint64_t>(1, columns / kMostColumns);
  // Never fewer rows than there are rows of cells, or some cells would have no value.
  const std::uint64_t most_rows = std::max(kMostValues / (columns / column_step), map.rows);
  const std::uint64_t row_step = std::max<std::uint64_t>(1, rows / most_rows);
  map.is_partial = row_step > 1 || column_step > 1;
  const Tensor matrix = matrix_of(tensor, region, row_step, column_step);
  const std::uint64_t read_rows = matrix.shape()[0], read_columns = matrix.shape()[1];
  std::vector<Cell> cells(map.rows * map.columns);
  std::vector<std::uint32_t> column_cell;
  for (std::uint64_t j = 0; j < read_columns; ++j)
    column_cell.push_back(static_cast<std::uint32_t>(cell_of(j * column_step, columns, map.columns)));

  std::vector<float> panel;
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kPanelValues / read_columns);
  for (std::uint64_t first = 0; first < read_rows; first += at_once) {
    if (!keep_going()) throw Error(Errc::cancelled, "cancelled");
    const std::uint64_t count = std::min(at_once, read_rows - first);
    panel.resize(count * read_columns);
    matrix.read(first * read_columns * sizeof(float), std::as_writable_bytes(std::span(panel)));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t line = cell_of((first + i) * row_step, rows, map.rows) * map.columns;
      for (std::uint64_t j = 0; j < read_columns; ++j)
        cells[line + column_cell[j]].add(panel[i * read_columns + j], what);
    }
  }
  for (const Cell& cell : cells) map.cells.push_back(cell.result(what));
  return map;
}

}  // namespace ballast::cli
