// Small tensors whose values are easy to tell, and what is in tensors.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ballast/tensor.hpp>

#include "support/fake_storages.hpp"

namespace ballast::test {

// first, first + 1, ...
inline Tensor numbers(const Shape& shape, float first = 0, DType dtype = DType::f32) {
  std::vector<float> values(*shape.numel());
  for (float& value : values) value = first++;
  return Tensor::from_values<float>(DType::f32, shape, values).to(dtype).realize();
}

inline Tensor some_tensor(std::size_t size, unsigned seed) {
  return Tensor::from_bytes(DType::u8, {size}, some_bytes(size, seed));
}

inline std::vector<float> values_of(const Tensor& tensor) {
  std::vector<float> values(tensor.numel());
  tensor.to(DType::f32).read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

inline std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.nbytes());
  tensor.read(0, bytes);
  return bytes;
}

}  // namespace ballast::test
