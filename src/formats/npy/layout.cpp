#include "formats/npy/layout.hpp"

#include <ballast/error.hpp>

#include <cstring>
#include <string>

namespace ballast::npy {

std::vector<std::byte> encode_header(const Tensor& tensor) {
  const DTypeInfo& type = info(tensor.dtype());
  if (type.numpy_name.empty()) {
    throw Error(Errc::unsupported, "NumPy has no name for " + std::string(type.name))
        .hint(type.kind == DTypeKind::floating ? "cast it to F32 first" : "write its raw bytes instead");
  }
  std::string dict = "{'descr': '" + std::string(type.numpy_name) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    if (i != 0) dict += ", ";
    dict += std::to_string(tensor.shape()[i]);
  }
  if (tensor.rank() == 1) dict += ',';
  dict += "), }";

  const std::size_t length_bytes = dict.size() + 80 > 0xFFFF ? 4 : 2;
  const std::size_t before = 8 + length_bytes;
  const std::size_t total = (before + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - before - 1, ' ');
  dict += '\n';

  std::string text = "\x93NUMPY";
  text += static_cast<char>(length_bytes == 2 ? 1 : 2);
  text += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) text += static_cast<char>(dict.size() >> (8 * i) & 0xFF);
  text += dict;
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace ballast::npy
