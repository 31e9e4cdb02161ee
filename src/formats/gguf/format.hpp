// The row of the table of formats.
#pragma once

#include "formats/format.hpp"

namespace ballast::gguf {

extern const FileFormat kFormat;

}  // namespace ballast::gguf
