// TensorNumbers: tells tensors apart by what they are, not by their names.
#pragma once

#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// Numbers tensors as they come. A tensor that is the same as an earlier one (storage, offset, dtype, shape, strides)
// gets the number of that one.
class TensorNumbers {
 public:
  std::size_t operator()(const Tensor& tensor) {
    if (!tensor.storage()) return count_++;
    Key key{tensor.storage().get(),
            tensor.offset(),
            tensor.dtype(),
            {tensor.shape().begin(), tensor.shape().end()},
            tensor.is_contiguous() ? Strides{} : tensor.strides()};
    const auto [place, is_new] = numbers_.try_emplace(std::move(key), count_);
    count_ += is_new;
    return place->second;
  }

 private:
  using Key = std::tuple<const Storage*, std::uint64_t, DType, std::vector<std::uint64_t>, Strides>;
  std::map<Key, std::size_t> numbers_;
  std::size_t count_ = 0;
};

}  // namespace ballast
