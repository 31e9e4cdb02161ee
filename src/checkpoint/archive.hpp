// A zip that is no checkpoint but holds some: each member's tensors under its name.
#pragma once

#include "formats/format.hpp"

namespace ballast {

// Names are MEMBER/NAME; the names of members lose the ending that all have by `format`. Members that are no checkpoint
// are passed over. Throws Errc::unsupported if none is one.
Checkpoint read_archive(const archive::Zip& zip, const FileFormat& format, const ReadContext& context);

}  // namespace ballast
