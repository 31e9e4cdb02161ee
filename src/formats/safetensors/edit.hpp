// A header with edited metadata: every other byte of its text stays as it is, whoever wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>
#include <ballast/source.hpp>

#include "formats/format.hpp"
#include "formats/safetensors/header.hpp"

namespace ballast::safetensors {

struct EditableHeader {
  std::shared_ptr<const PaddedText> text;
  Metadata metadata;
  TextRange metadata_text;       // the whole member in the text; empty if there is none
  std::uint64_t data_begin = 0;  // in the file
};

EditableHeader read_editable(const SourcePtr& source, const Limits& limits);

// The new bytes before the data: as many as now if the padding has room, else more.
std::vector<std::byte> with_metadata(const EditableHeader& header, const Metadata& metadata, const Limits& limits);

// Reads and edits at once. Throws Errc::not_found for a key that is to be removed and is not there.
EditedHead edit(const SourcePtr& source, const MetadataEdit& edit, const Limits& limits);

}  // namespace ballast::safetensors
