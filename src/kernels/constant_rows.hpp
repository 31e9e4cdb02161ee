// ConstantRows: finds the rows of a matrix whose values are all equal, block by block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ballast::kernels {

// The rows of one stretch of elements. Stretches that follow each other are merged, so several threads can look at one
// matrix. A row that is not finite is not constant.
class ConstantRows {
 public:
  ConstantRows() = default;  // counts nothing

  // Rows of `columns` elements, at least 1; the stretch begins at element `first` of the matrix.
  ConstantRows(std::uint64_t columns, std::uint64_t first)
      : columns_(columns), row_(first / columns), column_(first % columns), is_in_head_(column_ != 0) {}

  void add(const float* values, std::size_t count) noexcept;
  void add(const double* values, std::size_t count) noexcept;
  void add_bf16(const std::byte* codes, std::size_t count) noexcept;

  // Adds a stretch that begins where this one ends.
  void merge(const ConstantRows& next) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t zero_count() const noexcept { return zero_count_; }  // those whose values are 0
  std::uint64_t first_row() const noexcept { return first_row_; }    // if there are any
  double first_value() const noexcept { return first_value_; }

 private:
  // A row, or the part of it that has been seen.
  struct Piece {
    double value = 0;
    bool is_empty = true, is_constant = false;

    template <class Values>
    void extend(const Values& values, std::size_t first, std::size_t count) noexcept;
    void extend(const Piece& next) noexcept;
  };

  template <class Values>
  void add_values(const Values& values, std::size_t count) noexcept;
  void end_row() noexcept;

  std::uint64_t columns_ = 0;  // 0: counts nothing
  std::uint64_t row_ = 0, column_ = 0;
  bool is_in_head_ = false;  // the stretch began inside a row, and has not reached the end of that row
  Piece head_, open_;        // what has been seen of the row in which the stretch began, and of the last one
  std::uint64_t count_ = 0, zero_count_ = 0, first_row_ = 0;
  double first_value_ = 0;
};

}  // namespace ballast::kernels
