// The rows of the table of formats, one for each container: the zip of today, the stream of the years before 1.6 and
// bare pickles, the tar of 2016.
#pragma once

#include "formats/format.hpp"

namespace ballast::torch {

extern const FileFormat kZip, kStream, kTar;

}  // namespace ballast::torch
