#include "formats/gguf/encode.hpp"

#include <bit>
#include <concepts>
#include <span>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"

namespace ballast::gguf {
namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& out, std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

template <std::unsigned_integral T>
void append_number(Bytes& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  append(out, std::as_bytes(std::span(&value, 1)));
}

void append_type(Bytes& out, MetadataType type) { append_number(out, static_cast<std::uint32_t>(type)); }

void append_string(Bytes& out, std::string_view text) {
  append_number(out, std::uint64_t{text.size()});
  append(out, std::as_bytes(std::span(text)));
}

void append_field(Bytes& out, const MetadataEntry& field) {
  append_string(out, field.key);
  append_type(out, field.type);
  if (field.is_array()) {
    append_type(out, field.element_type);
    append_number(out, field.count);
  } else if (field.type == MetadataType::string) {
    append_number(out, std::uint64_t{field.bytes.size()});
  }
  append(out, field.bytes);
}

}  // namespace

Bytes encoded_fields(std::uint32_t version, std::uint64_t tensor_count, const TypedMetadata& fields, std::size_t room) {
  constexpr std::size_t kMostOfPreamble = 64, kMostBesideKeyAndBytes = 32;
  std::size_t size = kMostOfPreamble + room;
  for (const MetadataEntry& field : fields) size += field.key.size() + field.bytes.size() + kMostBesideKeyAndBytes;
  Bytes out;
  out.reserve(size);
  append(out, std::as_bytes(std::span(std::string_view("GGUF"))));
  append_number(out, version);
  append_number(out, tensor_count);
  append_number(out, std::uint64_t{fields.size()});
  for (const MetadataEntry& field : fields) append_field(out, field);
  return out;
}

void append_tensor(Bytes& out, std::string_view name, const Shape& shape, std::uint32_t type, std::uint64_t offset) {
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

void pad(Bytes& header, std::uint64_t alignment) {
  header.resize(static_cast<std::size_t>(fits(checked_align_up(header.size(), alignment), "the size of the header")));
}

}  // namespace ballast::gguf
