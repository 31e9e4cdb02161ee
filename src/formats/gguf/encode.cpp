#include "formats/gguf/encode.hpp"

#include <bit>
#include <concepts>

namespace ballast::gguf {
namespace {

constexpr std::uint32_t kVersion = 3;

template <std::unsigned_integral T>
void append_number(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_type(std::string& out, FieldType type) { append_number(out, static_cast<std::uint32_t>(type)); }

void append_string(std::string& out, std::string_view text) {
  append_number(out, std::uint64_t{text.size()});
  out += text;
}

}  // namespace

void append_preamble(std::string& out, std::uint64_t tensor_count, std::uint64_t key_count) {
  out += "GGUF";
  append_number(out, kVersion);
  append_number(out, tensor_count);
  append_number(out, key_count);
}

void append_field(std::string& out, const Field& field) {
  append_string(out, field.key);
  append_type(out, field.type);
  if (field.is_array()) {
    append_type(out, field.element_type);
    append_number(out, field.count);
  } else if (field.type == FieldType::string) {
    append_number(out, std::uint64_t{field.bytes.size()});
  }
  out.append(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
}

void append_tensor(std::string& out, std::string_view name, const Shape& shape, std::uint32_t type,
                   std::uint64_t offset) {
  append_string(out, name);
  append_number(out, static_cast<std::uint32_t>(shape.rank()));
  for (std::size_t i = shape.rank(); i-- > 0;) append_number(out, shape[i]);
  append_number(out, type);
  append_number(out, offset);
}

}  // namespace ballast::gguf
