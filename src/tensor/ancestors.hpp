// The tensors that a tensor is made of, and what they are made of in turn.
#pragma once

#include <functional>
#include <set>

#include <ballast/tensor.hpp>

namespace ballast {

// The tensor itself first, what its storage is derived from next, and so on. Empty tensors have no ancestors.
void for_each_ancestor(const Tensor& tensor,
                       const std::function<void(const Tensor& tensor, const Storage::Derivation& derivation)>& visit);

// What the storages of all these tensors keep in memory: see Storage::memory_bytes(). Those in `counted` are left out,
// and all that are counted here are added to it.
std::uint64_t kept_memory_bytes(const Tensor& tensor, std::set<const Storage*>& counted);

}  // namespace ballast
