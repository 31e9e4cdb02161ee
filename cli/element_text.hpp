// ElementText: writes the elements of one array so that they line up, by the rules of NumPy's array printing: the
// shortest digits that tell floats apart, at most eight after the point, and exponents for all elements if one needs
// them.
#pragma once

#include <cstddef>
#include <string>

#include "elements.hpp"

namespace ballast::cli {

class ElementText {
 public:
  // For values of `dtype`: 16-bit floats show only the few digits that tell them apart. A scalar stands alone and shows
  // all of its digits.
  explicit ElementText(DType dtype, bool is_scalar = false);

  // First call this for every element that will be shown, ...
  void look_at(const Element& element);

  // ... then write each of these elements.
  std::string text(const Element& element) const;

 private:
  // A column of real numbers; complex arrays have two.
  struct Reals {
    double largest = 0, smallest = 0;  // magnitudes of the finite values other than 0
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
  std::size_t width_ = 0;  // the width of integers and booleans
};

}  // namespace ballast::cli
