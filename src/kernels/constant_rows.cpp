#include "kernels/constant_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace ballast::kernels {

namespace {

struct Bf16Values {
  const std::byte* codes;

  // A BF16 is the upper half of an F32.
  float operator[](std::size_t i) const {
    std::uint16_t code = 0;
    std::memcpy(&code, codes + 2 * i, sizeof code);
    return std::bit_cast<float>(std::uint32_t{code} << 16);
  }
};

}  // namespace

template <class Values>
void ConstantRows::Piece::extend(const Values& values, std::size_t first, std::size_t count) noexcept {
  if (is_empty) {
    value = static_cast<double>(values[first]);
    is_constant = std::isfinite(value);
    is_empty = false;
  }
  for (std::size_t i = first; i < first + count && is_constant; ++i)
    is_constant = static_cast<double>(values[i]) == value;
}

void ConstantRows::Piece::extend(const Piece& next) noexcept {
  if (next.is_empty) return;
  if (is_empty) {
    *this = next;
    return;
  }
  is_constant = is_constant && next.is_constant && value == next.value;
}

void ConstantRows::end_row() noexcept {
  if (is_in_head_) {
    is_in_head_ = false;
  } else {
    if (open_.is_constant) {
      if (count_++ == 0) {
        first_row_ = row_;
        first_value_ = open_.value;
      }
      zero_count_ += open_.value == 0 ? 1U : 0U;
    }
    open_ = {};
  }
  ++row_;
  column_ = 0;
}

template <class Values>
void ConstantRows::add_values(const Values& values, std::size_t count) noexcept {
  if (columns_ == 0) return;
  for (std::size_t first = 0; first < count;) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(columns_ - column_, count - first));
    (is_in_head_ ? head_ : open_).extend(values, first, size);
    first += size;
    column_ += size;
    if (column_ == columns_) end_row();
  }
}

void ConstantRows::add(const float* values, std::size_t count) noexcept { add_values(values, count); }
void ConstantRows::add(const double* values, std::size_t count) noexcept { add_values(values, count); }
void ConstantRows::add_bf16(const std::byte* codes, std::size_t count) noexcept {
  add_values(Bf16Values{codes}, count);
}

void ConstantRows::merge(const ConstantRows& next) noexcept {
  if (columns_ == 0) return;
  (is_in_head_ ? head_ : open_).extend(next.head_);
  column_ = next.column_;
  if (next.is_in_head_) return;
  if (!next.head_.is_empty) end_row();
  column_ = next.column_;
  row_ = next.row_;
  if (count_ == 0) {
    first_row_ = next.first_row_;
    first_value_ = next.first_value_;
  }
  count_ += next.count_;
  zero_count_ += next.zero_count_;
  open_ = next.open_;
}

}  // namespace ballast::kernels
