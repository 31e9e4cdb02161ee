#include "formats/gguf/encode.hpp"

#include <bit>
#include <concepts>
#include <cstring>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"

namespace ballast::gguf {
namespace {

template <std::unsigned_integral T>
void append_number(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_type(std::string& out, MetadataType type) { append_number(out, static_cast<std::uint32_t>(type)); }

void append_string(std::string& out, std::string_view text) {
  append_number(out, std::uint64_t{text.size()});
  out += text;
}

}  // namespace

void append_preamble(std::string& out, std::uint32_t version, std::uint64_t tensor_count, std::uint64_t key_count) {
  out += "GGUF";
  append_number(out, version);
  append_number(out, tensor_count);
  append_number(out, key_count);
}

void append_field(std::string& out, const MetadataEntry& field) {
  append_string(out, field.key);
  append_type(out, field.type);
  if (field.is_array()) {
    append_type(out, field.element_type);
    append_number(out, field.count);
  } else if (field.type == MetadataType::string) {
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

void check_header_size(std::uint64_t size, const Limits& limits) {
  if (size <= limits.max_header_bytes) return;
  throw Error(Errc::limit, fmt::format("the header would have {} bytes, more than the {} that readers accept", size,
                                       limits.max_header_bytes));
}

std::vector<std::byte> padded(const std::string& header, std::uint64_t alignment) {
  const std::uint64_t size = fits(checked_align_up(header.size(), alignment), "the size of the header");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));  // zeros
  std::memcpy(bytes.data(), header.data(), header.size());
  return bytes;
}

}  // namespace ballast::gguf
