// Names in a torch zip that PyTorch's own reader confuses, because it does not tell "DATA.PKL" from "data.pkl".
#pragma once

#include <vector>

#include "formats/archive/zip.hpp"

namespace ballast::torch {

// For a zip with a data.pkl, in any case of letters: members whose name differs from that of another member, or from a
// name of the format, only in the case of letters. Each is a finding at the member's header. Other archives may have
// "w" beside "W".
std::vector<archive::ZipFinding> find_names_by_case(const archive::Zip& zip);

}  // namespace ballast::torch
