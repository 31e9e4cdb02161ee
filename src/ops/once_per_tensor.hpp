// OncePerTensor: what is made of a tensor is made once, however many names it has. So tied tensors stay tied.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

class OncePerTensor {
 public:
  template <class Make>
  Tensor operator()(const Tensor& tensor, const Make& make) {
    if (!tensor.storage()) return make(tensor);
    Key key{tensor.storage().get(),
            tensor.offset(),
            tensor.dtype(),
            {tensor.shape().begin(), tensor.shape().end()},
            tensor.is_contiguous() ? Strides{} : tensor.strides()};
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    return made_.emplace(std::move(key), make(tensor)).first->second;
  }

 private:
  using Key = std::tuple<const Storage*, std::uint64_t, DType, std::vector<std::uint64_t>, Strides>;
  std::map<Key, Tensor> made_;
};

}  // namespace ballast
