// The tensors that a tensor is made of, and what they are made of in turn.
#pragma once

#include <functional>

#include <ballast/tensor.hpp>

namespace ballast {

// The tensor itself first, what its storage is derived from next, and so on. Empty tensors have no ancestors.
void for_each_ancestor(const Tensor& tensor,
                       const std::function<void(const Tensor& tensor, const Storage::Derivation& derivation)>& visit);

}  // namespace ballast
