// The element types as PyTorch's globals name them: storages, dtypes, legacy tensor classes.
#pragma once

#include <optional>
#include <string_view>

#include <ballast/dtype.hpp>

namespace ballast::torch {

// "torch.FloatStorage", "torch.cuda.HalfStorage", "torch.storage.UntypedStorage".
struct StorageClass {
  std::optional<DType> dtype;  // nothing for an untyped storage, whose size counts bytes
};
std::optional<StorageClass> storage_class(std::string_view module, std::string_view name) noexcept;

// "torch.float32", and the older names "torch.float", "torch.half".
std::optional<DType> dtype_global(std::string_view module, std::string_view name) noexcept;

// "torch.FloatTensor", "torch.cuda.LongTensor", "torch.Tensor": the classes of the years before the rebuild functions.
struct TensorClass {
  std::optional<DType> dtype;  // nothing if the storage decides
};
std::optional<TensorClass> tensor_class(std::string_view module, std::string_view name) noexcept;

// Whether torch packs several elements into a byte but counts bytes in shapes: float4_e2m1fn_x2.
bool counts_bytes_in_shapes(DType dtype) noexcept;

// Whether the number in a persistent id counts bytes although shapes count elements: quint4x2, quint2x4.
bool counts_bytes_in_storages(DType dtype) noexcept;

}  // namespace ballast::torch
