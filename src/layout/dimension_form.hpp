// DimensionForm: how the dimensions of a tensor are made of others, in words: "experts (2 rows) columns" has three
// dimensions, and the second of them is two times as long as what `rows` stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

class DimensionForm {
 public:
  explicit DimensionForm(std::string_view text);  // throws Errc::invalid_argument

  // Whether both have the same words and numbers in the same order, so that one can be reshaped into the other.
  bool has_parts_of(const DimensionForm& other) const;

  // The same values, whatever the strides, in the dimensions that `to` says. Errc::mismatch if the shape is not of this
  // form. Lazy.
  Tensor reshaped(const Tensor& tensor, const DimensionForm& to) const;

 private:
  struct Part {
    std::string word;        // empty: a number
    std::uint64_t size = 0;  // of a number
    bool operator==(const Part&) const = default;
  };
  using Dimension = std::vector<Part>;

  void add(std::string_view token, Dimension& dimension) const;
  // The length of every part, in order.
  std::vector<std::uint64_t> measured(const Tensor& tensor) const;
  std::vector<Part> parts() const;

  std::string text_;
  std::vector<Dimension> dimensions_;
};

}  // namespace ballast
