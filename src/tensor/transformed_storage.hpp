// Another tensor's bytes, changed as they are read: byte order, signs. Nothing is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <ballast/tensor.hpp>

namespace ballast {

// `change` is given whole elements of the source's contiguous form, each `element_bytes` long (at most 16).
StoragePtr transformed_storage(Tensor source, std::uint64_t element_bytes,
                               std::function<void(std::span<std::byte>)> change);

// What has its bytes turned round as one: a complex number is two.
std::uint64_t swapped_bytes(DType dtype) noexcept;

// The change that turns the bytes of each element round.
std::function<void(std::span<std::byte>)> swap_elements(std::uint64_t element_bytes);

}  // namespace ballast
