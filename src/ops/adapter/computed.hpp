// A small tensor whose values are made of others when they are first read, and kept from then on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast::adapter {

// `make` returns all bytes of the result; `step` says what it does, as in Storage::Derivation.
Tensor computed(DType dtype, Shape shape, std::string step, std::vector<Tensor> from,
                std::function<std::vector<std::byte>(const std::vector<Tensor>&)> make);

// The values of a floating tensor, as they are or rounded to F32.
std::vector<float> floats_of(const Tensor& tensor);
std::vector<std::byte> bytes_of_floats(const std::vector<float>& values);

// A number of a tensor that holds one. Throws Errc::malformed where it holds more.
double scalar_of(const Tensor& tensor);

// The values times a factor, each rounded once to the dtype that they have. Lazy, a piece at a time.
Tensor scaled(const Tensor& tensor, double factor);

}  // namespace ballast::adapter
