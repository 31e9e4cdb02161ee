#include "formats/gguf/canonical.hpp"

#include <algorithm>
#include <string>

#include "core/cursor.hpp"

namespace ballast::gguf {
namespace {

std::span<const std::byte> part_of(const char* text, TextRange range) {
  return std::as_bytes(std::span(text + range.begin, static_cast<std::size_t>(range.size)));
}

void append_u64(std::string& out, std::uint64_t value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_numbers(std::string& out, std::span<const std::byte> numbers, std::size_t each, std::endian order) {
  const std::size_t first = out.size();
  out.append(reinterpret_cast<const char*>(numbers.data()), numbers.size());
  if (order == std::endian::little) return;
  for (auto at = out.begin() + static_cast<std::ptrdiff_t>(first); at != out.end();
       at += static_cast<std::ptrdiff_t>(each))
    std::reverse(at, at + static_cast<std::ptrdiff_t>(each));
}

void append_strings(std::string& out, Cursor in, std::uint32_t version) {
  while (!in.at_end()) {
    const std::uint64_t size = version == 1 ? in.u32("length") : in.u64("length");
    append_u64(out, size);
    out += in.string(size, "string");
  }
}

// The encoded values of all metadata, and where each value ends.
struct Encoded {
  std::string text;
  std::vector<std::size_t> ends;
};

Encoded encode(std::span<const RawField> fields, const char* text, std::uint32_t version, std::endian order) {
  Encoded encoded;
  encoded.ends.reserve(fields.size());
  for (const RawField& field : fields) {
    const auto value = part_of(text, field.value);
    const MetadataType type = field.type == MetadataType::array ? field.element_type : field.type;
    if (const std::size_t each = width(type); each != 0)
      append_numbers(encoded.text, value, each, order);
    else if (field.type == MetadataType::array)
      append_strings(encoded.text, Cursor(value, 0, order), version);
    else
      append_numbers(encoded.text, value, 1, std::endian::little);
    encoded.ends.push_back(encoded.text.size());
  }
  return encoded;
}

// Keeps both texts alive: the keys lie in `file`, the values in `values`.
struct Texts {
  std::shared_ptr<const char> file;
  std::string values;
};

}  // namespace

std::vector<MetadataEntry> canonical_fields(std::span<const RawField> raw, const std::shared_ptr<const char>& text,
                                            std::uint32_t version, std::endian order) {
  std::vector<MetadataEntry> fields;
  fields.reserve(raw.size());
  const auto add = [&](const RawField& field, std::span<const std::byte> value,
                       const std::shared_ptr<const void>& owner) {
    const std::string_view key(text.get() + field.key.begin, static_cast<std::size_t>(field.key.size));
    fields.push_back({key, field.type, field.element_type, field.count, value, owner});
  };
  if (version > 1 && order == std::endian::little) {
    for (const RawField& field : raw) add(field, part_of(text.get(), field.value), text);
    return fields;
  }
  Encoded encoded = encode(raw, text.get(), version, order);
  const auto texts = std::make_shared<const Texts>(Texts{text, std::move(encoded.text)});
  std::size_t begin = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    add(raw[i], std::as_bytes(std::span(texts->values).subspan(begin, encoded.ends[i] - begin)), texts);
    begin = encoded.ends[i];
  }
  return fields;
}

}  // namespace ballast::gguf
