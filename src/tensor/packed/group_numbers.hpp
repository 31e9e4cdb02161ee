// GroupNumbers: the scales of a matrix, or its zero points, each of which a group of elements shares.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <ballast/tensor.hpp>

#include "core/boxed.hpp"

namespace ballast {

// The matrix has `columns` columns. Its rows may be those of several matrices of `period` rows each, one after the
// other.
struct GroupNumbers {
  Tensor values{};                 // a line of `in_line` numbers for each group of rows, one after the other
  std::uint64_t in_line = 1;       // numbers for one row
  std::uint64_t columns_each = 1;  // columns that share a number; the last group of a row may have fewer
  std::uint64_t rows_each = 1;     // rows that share a line
  std::uint64_t period = 0;        // rows after which a new line begins in any case; 0: there is no such number
  std::uint64_t lines_in_period = 0;
  Boxed<Tensor> group_of{};               // the number of each column, in any order, instead of columns_each
  std::optional<int> exponent_bias{};     // the numbers are bytes x that stand for 2^(x - exponent_bias)
  std::optional<DType> rounded{};         // numbers are rounded to this dtype before they are used
  Boxed<Tensor> multiplier{}, divisor{};  // one number, for all numbers; each result is rounded to F32

  std::uint64_t line_of(std::uint64_t row) const noexcept {
    if (period == 0) return row / rows_each;
    return row / period * lines_in_period + row % period / rows_each;
  }

  // Whether element i of the matrix, counted row by row, has number i / columns_each.
  bool is_flat(std::uint64_t columns) const noexcept {
    if (period != 0 || group_of) return false;
    return (rows_each == 1 && in_line * columns_each == columns) || columns_each == kAll;
  }

  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
};

// One number for a whole matrix of any size.
GroupNumbers one_number(Tensor value);
GroupNumbers one_number(float value);

// The groups of the columns, if they are in any order: read once, by whoever needs them first. Throws Errc::malformed
// if a group is not one of `in_line`, naming the weight; groups below 0 count from the end, as PyTorch indexes.
std::vector<std::uint32_t> read_groups(const Tensor& group_of, std::uint64_t in_line, std::string_view weight);

// Some columns of some rows.
struct MatrixPart {
  std::uint64_t first_row, rows, first_column, columns;
};

// The numbers of a part of the matrix, in memory.
class LoadedNumbers {
 public:
  // `groups` are those of all columns, if GroupNumbers::group_of has them. If the part has several rows, it has all of
  // their columns.
  LoadedNumbers(const GroupNumbers& numbers, const MatrixPart& part, std::span<const std::uint32_t> groups);

  // The number of a column of a row. Next to it lie those of the next columns, of which columns_each() share one.
  const float* at(std::uint64_t row, std::uint64_t column) const noexcept {
    return values_.data() + (numbers_->line_of(row) - first_line_) * in_line_ + column / columns_each() - first_;
  }
  std::uint64_t columns_each() const noexcept { return numbers_->group_of ? 1 : numbers_->columns_each; }

 private:
  void change_values();
  void spread(std::span<const std::uint32_t> groups);

  const GroupNumbers* numbers_;
  std::uint64_t first_line_, in_line_, first_;  // `first_` is the number of a row that values_ begin with
  std::vector<float> values_;
};

// The values of a tensor as floats, whatever its dtype is: `count` of them from number `first` on.
std::vector<float> read_floats(const Tensor& tensor, std::uint64_t first, std::uint64_t count);

}  // namespace ballast
