// A zip that is not a checkpoint itself but holds checkpoints: each member's tensors under the member's name.
#pragma once

#include "formats/format.hpp"

namespace ballast {

// Names are MEMBER/NAME; a member's name loses the extension that all members have by `format`. Members that are not
// checkpoints are passed over. Throws Errc::unsupported if none is one.
Checkpoint read_archive(const archive::Zip& zip, const FileFormat& format, const ReadContext& context);

}  // namespace ballast
