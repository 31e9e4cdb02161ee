// Elements as NumPy describes them, in npy files and in pickles: a type code, an order of bytes and of dimensions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ballast/tensor.hpp>

namespace ballast {

struct NumpyType {
  std::string code;            // "<f4", "|O", "<U2"
  std::optional<DType> dtype;  // nothing where it is no number
  bool is_big_endian = false;

  bool is_object() const noexcept { return code == "|O"; }
};

// "<f4", ">i8", "|b1"; without a sign for the order of bytes it is this machine's, little-endian.
NumpyType numpy_type(std::string_view code);

// The type must be a number's. Throws Errc::malformed where the elements do not fit in the storage.
Tensor numpy_view(const NumpyType& type, Shape shape, bool is_fortran, StoragePtr storage, std::uint64_t offset = 0);

}  // namespace ballast
