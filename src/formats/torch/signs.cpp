#include "formats/torch/signs.hpp"

#include <ballast/error.hpp>

#include <string>
#include <utility>

#include "tensor/transformed_storage.hpp"

namespace ballast::torch {
namespace {

// The sign of a little-endian float is the highest bit of its last byte.
void flip_signs(std::span<std::byte> bytes, std::size_t first, std::size_t step) {
  for (std::size_t i = first; i < bytes.size(); i += step) bytes[i] ^= std::byte{0x80};
}

}  // namespace

Tensor with_signs(Tensor tensor, bool is_conjugate, bool is_negative) {
  const DTypeInfo& type = info(tensor.dtype());
  const bool is_complex = type.kind == DTypeKind::complex;
  is_conjugate = is_conjugate && is_complex;  // the conjugate of a real number is the number
  if ((!is_conjugate && !is_negative) || tensor.numel() == 0) return tensor;
  if (!is_complex && (type.kind != DTypeKind::floating || type.block_elements != 1 || type.block_bytes == 1)) {
    throw Error(Errc::unsupported, "a negative view of " + std::string(type.name));
  }

  const std::size_t size = type.block_bytes, part = is_complex ? size / 2 : size;
  const bool flips_real = is_negative, flips_imaginary = is_complex && is_negative != is_conjugate;
  const auto change = [=](std::span<std::byte> bytes) {
    if (flips_real) flip_signs(bytes, part - 1, size);
    if (flips_imaginary) flip_signs(bytes, size - 1, size);
  };
  const char* step = !flips_imaginary ? "negate the real part" : flips_real ? "negate" : "conjugate";
  const Shape shape = tensor.shape();
  const DType dtype = tensor.dtype();
  return Tensor(dtype, shape, transformed_storage(std::move(tensor), size, step, change));
}

}  // namespace ballast::torch
