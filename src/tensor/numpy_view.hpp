// Elements as NumPy describes them, in npy files and in pickles: a type code, a byte order and an order of dimensions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/tensor.hpp>

namespace ballast {

struct NumpyType {
  std::string code;            // "<f4", "|O", "<U2"
  std::optional<DType> dtype;  // empty if it is not a number
  bool is_big_endian = false;

  bool is_object() const noexcept { return code == "|O"; }
};

// "<f4", ">i8", "|b1"; a code without a sign for the byte order has that of this machine, little-endian.
NumpyType numpy_type(std::string_view code);

// The type must be a number. Throws Errc::malformed if the elements do not fit in the storage.
Tensor numpy_view(const NumpyType& type, Shape shape, bool is_fortran, StoragePtr storage, std::uint64_t offset = 0);

}  // namespace ballast
