// A header with edited metadata: what it says of the tensors stays as it is, whoever wrote it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/source.hpp>
#include <ballast/typed_metadata.hpp>

#include "formats/format.hpp"

namespace ballast::gguf {

struct EditableHeader {
  TypedMetadata fields;
  std::uint32_t version = 3;
  std::uint64_t alignment = 0;
  std::uint64_t tensor_count = 0;
  std::string tensors;           // their entries, byte for byte
  std::uint64_t data_begin = 0;  // in the file
};

// Reads little-endian files of version 2 and 3; other files are Errc::unsupported.
EditableHeader read_editable(const Source& source, const Limits& limits);

// The new bytes before the data. If they are as many as before, the data can stay where they lie. Throws
// Errc::unsupported if `fields` ask for another alignment, which would move every tensor.
std::vector<std::byte> with_fields(const EditableHeader& header, const TypedMetadata& fields, const Limits& limits);

// Reads and edits at once. Values are written as people type them: "KEY[:TYPE]=VALUE". Throws Errc::not_found for a key
// that is to be removed and is not there.
EditedHead edit(const SourcePtr& source, const MetadataEdit& edit, const Limits& limits);

}  // namespace ballast::gguf
