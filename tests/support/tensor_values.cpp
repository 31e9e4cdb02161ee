#include "support/tensor_values.hpp"

namespace ballast::test {

Tensor numbers(const Shape& shape, float first, DType dtype) {
  std::vector<float> values(*shape.numel());
  for (float& value : values) value = first++;
  return Tensor::from_values<float>(DType::f32, shape, values).to(dtype).realize();
}

Tensor some_tensor(std::size_t size, unsigned seed) {
  return Tensor::from_bytes(DType::u8, {size}, some_bytes(size, seed));
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.nbytes());
  tensor.read(0, bytes);
  return bytes;
}

std::string text_of(const Tensor& tensor) {
  std::string bytes(tensor.nbytes(), '\0');
  tensor.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : checkpoint) names.emplace_back(name);
  return names;
}

}  // namespace ballast::test
