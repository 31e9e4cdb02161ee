#include <ballast/shape.hpp>

#include <algorithm>
#include <charconv>

#include "core/checked.hpp"

namespace ballast {

bool operator==(const Shape& a, const Shape& b) noexcept { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const std::uint64_t dim : shape) {
    char digits[24];
    if (text.size() > 1) text += ", ";
    text.append(digits, std::to_chars(digits, digits + sizeof digits, dim).ptr);
  }
  text += ']';
  return text;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.rank());
  // Unsigned, so that the product wraps around harmlessly if a shape has a 0 beside dimensions too large to multiply:
  // such a shape has no element that a stride could lead to.
  std::uint64_t stride = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(stride);
    stride *= std::max<std::uint64_t>(shape[i], 1);
  }
  return strides;
}

}  // namespace ballast
