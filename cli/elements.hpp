// Elements: a tensor's values one by one, read through a window so that a tensor of any size takes little memory.
#pragma once

#include <complex>
#include <cstdint>
#include <variant>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::cli {

// Integers are exact; floats have a type that holds them exactly, so that they print in their own precision.
using Element =
    std::variant<bool, std::int64_t, std::uint64_t, float, double, std::complex<float>, std::complex<double>>;

struct ElementDecoder;

class Elements {
 public:
  // Reads `window` elements at a time. Throws Errc::unsupported for dtypes without numbers to show (ggml blocks).
  Elements(const Tensor& tensor, std::uint64_t window);

  const Shape& shape() const { return tensor_.shape(); }
  std::uint64_t count() const { return tensor_.numel(); }

  // `i` counts in contiguous order. Access is cheap if `i` ascends.
  Element operator[](std::uint64_t i);

 private:
  const ElementDecoder& decoder_;
  Tensor tensor_;
  std::uint64_t window_;
  std::uint64_t first_ = 0;  // the element that buffer_ begins with
  std::vector<std::byte> buffer_;
};

}  // namespace ballast::cli
