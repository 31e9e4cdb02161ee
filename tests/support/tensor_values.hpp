// The values of tensors, and small tensors whose values are easy to check.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <ballast/checkpoint.hpp>

#include "support/fake_storages.hpp"

namespace ballast::test {

// The values are first, first + 1, ...
Tensor numbers(const Shape& shape, float first = 0, DType dtype = DType::f32);

Tensor some_tensor(std::size_t size, unsigned seed);

// The stored values; for floats, the tensor is cast to F32 first.
template <class T = float>
std::vector<T> values_of(const Tensor& tensor) {
  const Tensor stored = std::is_same_v<T, float> ? tensor.to(DType::f32) : tensor;
  std::vector<T> values(stored.nbytes() / sizeof(T));
  if (stored.storage()) stored.storage()->prepare({});
  stored.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<std::byte> bytes_of(const Tensor& tensor);
std::string text_of(const Tensor& tensor);  // the bytes as a text

std::vector<std::string> names_of(const Checkpoint& checkpoint);  // in order

}  // namespace ballast::test
