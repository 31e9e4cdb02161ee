// The row of the table of formats.
#pragma once

#include "formats/format.hpp"

namespace ballast::safetensors {

extern const FileFormat kFormat;

}  // namespace ballast::safetensors
