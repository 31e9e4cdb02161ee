// OncePerTensor: transforms a tensor once, however many names it has. So tied tensors stay tied.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/tensor_numbers.hpp"

namespace ballast {

class OncePerTensor {
 public:
  template <class Make>
  Tensor operator()(const Tensor& tensor, const Make& make) {
    const std::size_t number = numbers_(tensor);
    if (number == made_.size()) made_.push_back(make(tensor));
    return made_[number];
  }

 private:
  TensorNumbers numbers_;
  std::vector<Tensor> made_;
};

}  // namespace ballast
