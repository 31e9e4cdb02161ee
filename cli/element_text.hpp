// ElementText: how the elements of one array are written so that they line up, by the rules of NumPy's array printing:
// shortest digits that tell floats apart, at most eight after the point, and exponents for all if one needs them.
#pragma once

#include <cstddef>
#include <string>

#include "elements.hpp"

namespace ballast::cli {

class ElementText {
 public:
  // For values of `dtype`: 16-bit floats have few digits, and show no more than tell them apart.
  // A scalar stands alone, with all of its digits.
  explicit ElementText(DType dtype, bool is_scalar = false);

  // First look at every element that will be shown, ...
  void look_at(const Element& element);

  // ... then write each of them.
  std::string text(const Element& element) const;

 private:
  // The column of real numbers; complex arrays have two.
  struct Reals {
    double largest = 0, smallest = 0;  // of the finite values other than 0, without sign
    std::size_t fixed_left = 0, fixed_right = 0;
    std::size_t exponent_left = 0, exponent_right = 0;
    std::size_t word = 0;  // the longest of nan, inf, -inf
    bool is_shortened = false, has_signs = false;

    bool uses_exponents() const;
    template <class Float>
    void look_at(Float value);
    template <class Float>
    std::string text(Float value) const;
  };

  bool is_scalar_;
  int significant_bits_;
  Reals real_, imaginary_;
  std::size_t width_ = 0;  // of integers and booleans
};

}  // namespace ballast::cli
