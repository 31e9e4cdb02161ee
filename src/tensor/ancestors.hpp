// The ancestors of a tensor: the tensors that it is made of, and those that these are made of in turn.
#pragma once

#include <functional>
#include <set>

#include <ballast/tensor.hpp>

#include "kernels/fact_hash.hpp"

namespace ballast {

// Visits the tensor itself first, then the tensors that its storage is derived from, and so on. Empty tensors have no
// ancestors.
void for_each_ancestor(const Tensor& tensor,
                       const std::function<void(const Tensor& tensor, const Storage::Derivation& derivation)>& visit);

// The memory that the storages of all these tensors keep: see Storage::memory_bytes(). Storages in `counted` are left
// out, and storages that are counted here are added to it.
std::uint64_t kept_memory_bytes(const Tensor& tensor, std::set<const Storage*>& counted);

// What a tensor is of: its dtype, shape and place, and the step that makes it of the tensors before it.
void add_facts(kernels::FactHash& hash, const Tensor& tensor, const Storage::Derivation& derivation);

}  // namespace ballast
