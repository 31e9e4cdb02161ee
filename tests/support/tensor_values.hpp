// What is in tensors, and small tensors in which that is easy to tell.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <ballast/checkpoint.hpp>

#include "support/fake_storages.hpp"

namespace ballast::test {

// first, first + 1, ...
Tensor numbers(const Shape& shape, float first = 0, DType dtype = DType::f32);

Tensor some_tensor(std::size_t size, unsigned seed);

// As they are stored; as floats, what they mean.
template <class T = float>
std::vector<T> values_of(const Tensor& tensor) {
  const Tensor stored = std::is_same_v<T, float> ? tensor.to(DType::f32) : tensor;
  std::vector<T> values(stored.nbytes() / sizeof(T));
  if (stored.storage()) stored.storage()->prepare({});
  stored.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<std::byte> bytes_of(const Tensor& tensor);
std::string text_of(const Tensor& tensor);  // the same

std::vector<std::string> names_of(const Checkpoint& checkpoint);  // in order

}  // namespace ballast::test
