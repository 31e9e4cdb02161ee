// FileIdentity: tells a file from another file, and from itself before somebody changed it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ballast::io {

struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size_bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // nanoseconds since 1970; changed_ns: any change of the file or of its
                                                 // inode

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Follows links. Nothing if there is no such file.
std::optional<FileIdentity> identify(const std::string& path);
FileIdentity identify(const struct stat& found);

}  // namespace ballast::io
