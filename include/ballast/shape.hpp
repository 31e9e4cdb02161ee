// Shape: the dimensions of a tensor. Up to four are kept inline, because a checkpoint has a hundred thousand of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ballast {

class Shape {
 public:
  Shape() noexcept : inline_{} {}
  Shape(std::initializer_list<std::uint64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::uint64_t> dims) : inline_{} {
    std::uint64_t* to = inline_;
    if (dims.size() > kInline) to = heap_ = new std::uint64_t[dims.size()];
    for (std::size_t i = 0; i < dims.size(); ++i) to[i] = dims[i];
    rank_ = static_cast<std::uint32_t>(dims.size());
  }
  Shape(const Shape& other) : Shape(other.dims()) {}
  Shape(Shape&& other) noexcept : inline_{}, rank_(std::exchange(other.rank_, 0)) {
    if (rank_ > kInline) {
      heap_ = other.heap_;
    } else {
      for (std::size_t i = 0; i < kInline; ++i) inline_[i] = other.inline_[i];
    }
  }
  Shape& operator=(Shape other) noexcept;
  ~Shape() { if (rank_ > kInline) delete[] heap_; }

  std::size_t rank() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  const std::uint64_t* begin() const noexcept { return rank_ > kInline ? heap_ : inline_; }
  const std::uint64_t* end() const noexcept { return begin() + rank_; }
  std::uint64_t operator[](std::size_t i) const noexcept { return begin()[i]; }
  std::span<const std::uint64_t> dims() const noexcept { return {begin(), rank_}; }

  // The number of elements (1 for a scalar); nothing where it does not fit 64 bits.
  std::optional<std::uint64_t> numel() const noexcept {
    std::uint64_t count = 1;
    for (const std::uint64_t dim : *this) {
      if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
    }
    return count;
  }

  friend bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  static constexpr std::size_t kInline = 4;
  union {
    std::uint64_t inline_[kInline];
    std::uint64_t* heap_;
  };
  std::uint32_t rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[2, 3]"

// Strides count elements, may be 0 (a repeated dimension) or negative (a reversed one).
using Strides = std::vector<std::int64_t>;
Strides contiguous_strides(const Shape& shape);

}  // namespace ballast
