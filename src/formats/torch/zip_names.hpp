// Names in a torch zip that PyTorch's own reader takes for others, because it does not tell "DATA.PKL" from "data.pkl".
#pragma once

#include <vector>

#include "formats/archive/zip.hpp"

namespace ballast::torch {

// Members of a zip with a data.pkl, however that is spelled, that have the name of another or of a part of the format
// but for the case of letters. Each is a finding at the member's header. Other archives may have "w" beside "W".
std::vector<archive::ZipFinding> find_names_by_case(const archive::Zip& zip);

}  // namespace ballast::torch
