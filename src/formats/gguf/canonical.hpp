// The metadata of a file of any version and byte order, in the encoding of GGUF 3, little-endian, in which
// TypedMetadata are kept.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ballast/typed_metadata.hpp>

#include "formats/gguf/header_text.hpp"

namespace ballast::gguf {

// A key of the metadata as it stands in the file. The value is without a string's length, and without an array's type
// and count.
struct RawField {
  TextRange key, value;
  std::uint64_t count = 1;
  MetadataType type = MetadataType::u8, element_type = MetadataType::u8;
};

// Returns views of the text if it has this encoding already, else of a copy that has it. The fields must have been
// checked.
std::vector<MetadataEntry> canonical_fields(std::span<const RawField> fields, const std::shared_ptr<const char>& text,
                                            std::uint32_t version, std::endian order);

}  // namespace ballast::gguf
