// The rows of the table of formats: a NumPy file, and an archive of them.
#pragma once

#include "formats/format.hpp"

namespace ballast::npy {

extern const FileFormat kFormat, kNpz;

}  // namespace ballast::npy
