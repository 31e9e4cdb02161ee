// A small tensor whose values are made of others when they are first read, and kept from then on.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::peft {

// `make` returns all bytes of the result; `step` says what it does, as in Storage::Derivation.
Tensor computed(DType dtype, Shape shape, std::string step, std::vector<Tensor> from,
                std::function<std::vector<std::byte>(const std::vector<Tensor>&)> make);

template <class T>
std::vector<std::byte> to_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// The number of a tensor that holds one. Throws Errc::malformed if it holds more.
double scalar_of(const Tensor& tensor);

// The values times a factor, each rounded once to the dtype that it has. Lazy, a piece at a time.
Tensor scaled(const Tensor& tensor, double factor);

}  // namespace ballast::peft
