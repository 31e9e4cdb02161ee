// A sparse tensor as the dense tensor that it stands for, made as it is read.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <ballast/checkpoint.hpp>

namespace ballast {

// "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc".
bool is_sparse_layout(std::string_view layout) noexcept;

// The parts are those of the composite, in its order. Throws Errc::malformed if their shapes do not fit together, and
// Errc::unsupported for a dtype that has no zero or no sum. The indices themselves are checked when they are read.
Tensor dense_tensor(const Composite& composite, std::span<const Tensor> parts);

// The most memory that the indices take once the dense form is read. A stride of 0 can make them many.
std::uint64_t index_memory_bytes(std::span<const Tensor> parts) noexcept;

}  // namespace ballast
