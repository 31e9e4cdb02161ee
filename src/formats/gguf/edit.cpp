#include "formats/gguf/edit.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/metadata_text.hpp>

#include "core/text.hpp"
#include "formats/gguf/encode.hpp"
#include "formats/gguf/header.hpp"

namespace ballast::gguf {

EditableHeader read_editable(const Source& source, const Limits& limits) try {
  Header header = read_header(source, limits);
  if (header.version == 1 || header.order == std::endian::big) {
    throw Error(Errc::unsupported, fmt::format("a {}-endian file of version {} is not edited",
                                               header.order == std::endian::big ? "big" : "little", header.version))
        .hint("convert it first: what is written is little-endian, of version 3");
  }
  return {std::move(header.fields),
          header.version,
          header.alignment,
          header.tensors.size(),
          std::string(header.text.get() + header.fields_end, header.end - header.fields_end),
          std::min(header.data_offset, source.size_bytes())};
} catch (Error& error) {
  throw error.in(source.name());
}

std::vector<std::byte> with_fields(const EditableHeader& header, const TypedMetadata& fields, const Limits& limits) {
  if (alignment_of(fields) != header.alignment) {
    throw Error(Errc::unsupported, fmt::format("{} cannot be set to {}: every tensor would have to move", kAlignmentKey,
                                               alignment_of(fields)))
        .hint("convert the file instead");
  }
  auto bytes = encoded_fields(header.version, header.tensor_count, fields, header.tensors.size());
  const auto tensors = std::as_bytes(std::span(header.tensors));
  bytes.insert(bytes.end(), tensors.begin(), tensors.end());
  check_header_size(bytes.size(), limits);
  pad(bytes, header.alignment);
  return bytes;
}

EditedHead edit(const SourcePtr& source, const MetadataEdit& edit, const Limits& limits) {
  const EditableHeader header = read_editable(*source, limits);
  TypedMetadata fields = header.fields;
  for (const std::string& key : edit.unset) {
    if (!fields.remove(key)) throw Error(Errc::not_found, "the metadata has no " + quote(key)).about(key);
  }
  for (const auto& [key, value] : edit.set) assign(fields, key + "=" + value);
  if (fields == header.fields) return {};
  return {true, {}, {}, header.data_begin, with_fields(header, fields, limits)};
}

}  // namespace ballast::gguf
