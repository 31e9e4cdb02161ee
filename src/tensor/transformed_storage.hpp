// Another tensor's bytes, changed as they are read: byte order, signs. Nothing is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <ballast/tensor.hpp>

namespace ballast {

// `change` is given whole elements of the source's contiguous form, each `element_bytes` long (at most 16). `step` says
// what it does, as in Storage::Derivation.
StoragePtr transformed_storage(Tensor source, std::uint64_t element_bytes, std::string step,
                               std::function<void(std::span<std::byte>)> change);

// The bytes of a view in the view's order, unchanged: for a shape or a dtype that the view cannot have.
StoragePtr gathered_storage(Tensor view);

// The bytes of each element in reverse order.
StoragePtr swapped_elements(Tensor bytes, std::uint64_t element_bytes);

// How many bytes are reversed together: a complex number is two such units.
std::uint64_t swapped_bytes(DType dtype) noexcept;

}  // namespace ballast
