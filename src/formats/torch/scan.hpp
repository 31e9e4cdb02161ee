// How scan looks into PyTorch's files: at every pickle, and never at numbers as if they were a pickle.
#pragma once

#include "formats/format.hpp"

namespace ballast::torch {

void scan_stream(const ScannedPart& file, Scanner& scanner);
void scan_tar(const ScannedPart& file, Scanner& scanner);

}  // namespace ballast::torch
