// Shape: the dimensions of a tensor. Up to four are kept inline, because a checkpoint has a hundred thousand shapes.
//
// A Shape is a value that owns its dimensions; it allocates only for more than four. Several threads may read one while
// nobody changes it.
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
  Shape() noexcept = default;
  Shape(std::initializer_list<std::uint64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::uint64_t> dims) {
    std::uint64_t* to = words_;
    if (dims.size() > kInline) words_[0] = reinterpret_cast<std::uintptr_t>(to = new std::uint64_t[dims.size()]);
    for (std::size_t i = 0; i < dims.size(); ++i) to[i] = dims[i];
    rank_ = static_cast<std::uint32_t>(dims.size());
  }
  // The first `rank` of four dimensions: without a loop, for readers that make many shapes.
  Shape(const std::uint64_t (&dims)[4], std::uint32_t rank) noexcept
      : words_{dims[0], dims[1], dims[2], dims[3]}, rank_(rank) {}
  Shape(const Shape& other) : Shape(other.dims()) {}
  Shape(Shape&& other) noexcept { swap(other); }
  Shape& operator=(Shape other) noexcept {
    swap(other);
    return *this;
  }
  ~Shape() {
    if (rank_ > kInline) delete[] begin();
  }

  std::size_t rank() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  const std::uint64_t* begin() const noexcept {
    return rank_ > kInline ? reinterpret_cast<const std::uint64_t*>(words_[0]) : words_;
  }
  const std::uint64_t* end() const noexcept { return begin() + rank_; }
  std::uint64_t operator[](std::size_t i) const noexcept { return begin()[i]; }
  std::span<const std::uint64_t> dims() const noexcept { return {begin(), rank_}; }

  // The number of elements (1 for a scalar). Empty if the number does not fit 64 bits.
  std::optional<std::uint64_t> numel() const noexcept {
    std::uint64_t count = 1;
    for (const std::uint64_t dim : *this) {
      if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
    }
    return count;
  }

  friend bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  // Swaps member by member: a tensor keeps its dtype in the unused part of this class's last eight bytes.
  void swap(Shape& other) noexcept {
    for (std::size_t i = 0; i < kInline; ++i) std::swap(words_[i], other.words_[i]);
    std::swap(rank_, other.rank_);
  }

  static constexpr std::size_t kInline = 4;
  std::uint64_t words_[kInline] = {};  // the dimensions; if there are more than four, the first word is their address
  std::uint32_t rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[2, 3]"

// Strides count elements, may be 0 (a repeated dimension) or negative (a reversed one).
using Strides = std::vector<std::int64_t>;
Strides contiguous_strides(const Shape& shape);

}  // namespace ballast
