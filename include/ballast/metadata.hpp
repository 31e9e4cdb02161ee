// edit_metadata: changes a file's metadata without touching its tensors.
//
// edit_metadata() may be called from several threads at once for different files. Of two edits of one file at the same
// time, one may be refused or lost.
//
// Example:
//   edit_metadata("model.safetensors", {.set = {{"author", "me"}}});
#pragma once

#include <string>

#include <ballast/save.hpp>

namespace ballast {

struct MetadataEditReport {
  bool changed = false;
  bool in_place = false;  // the header's padding had room; else the file was written anew and renamed
};

// The text of a file, to be a value: UTF-8, else Errc::malformed; larger than a header may be is Errc::limit.
std::string read_metadata_text(const std::string& path, const Limits& limits = {});

// In a GGUF, a key that is set may name a type, and the value may be an array: see metadata_text.hpp. Throws
// Errc::not_found if a key to unset is not there.
MetadataEditReport edit_metadata(const std::string& path, const MetadataEdit& edit, const SaveOptions& options = {});

}  // namespace ballast
