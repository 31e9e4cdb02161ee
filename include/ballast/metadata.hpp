// Editing a file's metadata without touching its tensors.
#pragma once

#include <string>

#include <ballast/save.hpp>

namespace ballast {

struct MetadataEditReport {
  bool changed = false;
  bool in_place = false;  // the header's padding had room; else the file was rewritten beside itself and renamed
};

// Throws Errc::not_found where a key to unset is not there.
MetadataEditReport edit_metadata(const std::string& path, const MetadataEdit& edit, const SaveOptions& options = {});

}  // namespace ballast
