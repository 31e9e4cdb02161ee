#include "formats/torch/types.hpp"

#include <algorithm>
#include <array>

namespace ballast::torch {
namespace {

struct Name {
  std::string_view name;
  DType dtype;
};

// The words before "Storage" and "Tensor" in the names of classes.
// clang-format off
constexpr std::array kClassStems = {
    Name{"Double", DType::f64}, Name{"Float", DType::f32}, Name{"Half", DType::f16}, Name{"BFloat16", DType::bf16},
    Name{"Long", DType::i64}, Name{"Int", DType::i32}, Name{"Short", DType::i16}, Name{"Char", DType::i8},
    Name{"Byte", DType::u8}, Name{"Bool", DType::boolean},
    Name{"ComplexDouble", DType::c128}, Name{"ComplexFloat", DType::c64}, Name{"ComplexHalf", DType::c32},
    Name{"QInt8", DType::qi8}, Name{"QUInt8", DType::qu8}, Name{"QInt32", DType::qi32},
    Name{"QUInt4x2", DType::qu4x2}, Name{"QUInt2x4", DType::qu2x4},
};

constexpr std::array kOlderDTypes = {
    Name{"double", DType::f64}, Name{"float", DType::f32}, Name{"half", DType::f16}, Name{"long", DType::i64},
    Name{"int", DType::i32}, Name{"short", DType::i16}, Name{"cfloat", DType::c64}, Name{"cdouble", DType::c128},
    Name{"chalf", DType::c32},
};
// clang-format on

std::optional<DType> find(std::span<const Name> names, std::string_view name) noexcept {
  const auto it = std::find_if(names.begin(), names.end(), [&](const Name& entry) { return entry.name == name; });
  return it == names.end() ? std::nullopt : std::optional(it->dtype);
}

// torch, torch.cuda, torch.hpu, ...: the device does not belong to the type.
bool is_module_of_classes(std::string_view module) noexcept {
  return module == "torch" || module.starts_with("torch.");
}

std::optional<DType> class_dtype(std::string_view name, std::string_view ending) noexcept {
  return find(kClassStems, name.substr(0, name.size() - ending.size()));
}

}  // namespace

std::optional<StorageClass> storage_class(std::string_view module, std::string_view name) noexcept {
  constexpr std::string_view kEnding = "Storage";
  if (!is_module_of_classes(module) || !name.ends_with(kEnding)) return std::nullopt;
  if (name == "UntypedStorage" || name == "_UntypedStorage") return StorageClass{};
  const auto dtype = class_dtype(name, kEnding);
  return dtype ? std::optional(StorageClass{dtype}) : std::nullopt;
}

std::optional<DType> dtype_global(std::string_view module, std::string_view name) noexcept {
  if (module != "torch" || name.empty()) return std::nullopt;
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.torch_name == name) return info.dtype;
  }
  return find(kOlderDTypes, name);
}

std::optional<TensorClass> tensor_class(std::string_view module, std::string_view name) noexcept {
  constexpr std::string_view kEnding = "Tensor";
  if (!is_module_of_classes(module) || !name.ends_with(kEnding)) return std::nullopt;
  if (name == kEnding) return TensorClass{};
  const auto dtype = class_dtype(name, kEnding);
  return dtype ? std::optional(TensorClass{dtype}) : std::nullopt;
}

bool counts_bytes_in_shapes(DType dtype) noexcept { return dtype == DType::f4; }

bool counts_bytes_in_storages(DType dtype) noexcept { return dtype == DType::qu4x2 || dtype == DType::qu2x4; }

}  // namespace ballast::torch
