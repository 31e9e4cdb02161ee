#include "tensor/numpy_view.hpp"

#include <ballast/error.hpp>

#include <cassert>
#include <utility>

#include "core/checked.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast {
namespace {

// "f4" -> F32. The table has the little-endian spelling: "<f4", "|u1".
std::optional<DType> find_number(std::string_view kind_and_size) {
  if (kind_and_size == "?") return DType::boolean;
  for (const DTypeInfo& info : all_dtypes()) {
    if (!info.numpy_name.empty() && info.numpy_name.substr(1) == kind_and_size) return info.dtype;
  }
  return std::nullopt;
}

Strides fortran_strides(const Shape& shape) {
  Strides strides(shape.rank());
  std::uint64_t step = 1;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    strides[i] = static_cast<std::int64_t>(step);
    step *= shape[i];  // the product was checked before
  }
  return strides;
}

}  // namespace

NumpyType numpy_type(std::string_view code) {
  constexpr std::string_view kOrders = "<>|=";
  const bool has_order = !code.empty() && kOrders.find(code[0]) != std::string_view::npos;
  const char order = has_order && code[0] != '=' ? code[0] : '<';
  const std::string_view rest = has_order ? code.substr(1) : code;

  NumpyType type;
  type.dtype = find_number(rest);
  type.is_big_endian = order == '>';
  const bool is_single_byte = type.dtype && info(*type.dtype).block_bytes == 1;
  const bool has_no_order = is_single_byte || rest.starts_with('O') || rest.starts_with('S') || rest.starts_with('V');
  type.code = rest.starts_with('O') ? "|O" : std::string(1, has_no_order ? '|' : order) + std::string(rest);
  return type;
}

Tensor numpy_view(const NumpyType& type, Shape shape, bool is_fortran, StoragePtr storage, std::uint64_t offset) {
  assert(type.dtype);
  const auto count = shape.numel();
  const auto size = count ? bytes_of(*type.dtype, *count) : std::nullopt;
  if (!size || *size > INT64_MAX) throw Error(Errc::malformed, "the size of the array does not fit 64 bits");

  const std::uint64_t swapped = swapped_bytes(*type.dtype);
  if (type.is_big_endian && swapped > 1 && *size != 0) {
    Tensor bytes(DType::u8, {*size}, std::move(storage), offset);
    storage = swapped_elements(std::move(bytes), swapped);
    offset = 0;
  }
  if (!is_fortran) return Tensor(*type.dtype, std::move(shape), std::move(storage), offset);
  Strides strides = fortran_strides(shape);
  return Tensor(*type.dtype, std::move(shape), std::move(strides), std::move(storage), offset);
}

}  // namespace ballast
