// The open file behind a location, for those who read it, share its blocks or compare it by its descriptor.
#pragma once

#include <ballast/source.hpp>

#include "io/posix.hpp"

namespace ballast {

struct OpenFile {
  io::UniqueFd fd;  // open for reading as long as the source lives
};

// -1 if the location is not in a local file.
inline int descriptor_of(const FileLocation& location) {
  return location.open_file == nullptr ? -1 : location.open_file->fd.get();
}

}  // namespace ballast
