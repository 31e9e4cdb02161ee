// A zip that is no checkpoint but holds some: each member's tensors under its name.
#pragma once

#include <ballast/open.hpp>

#include "formats/archive/zip.hpp"

namespace ballast {

// An npz (only .npy members; names without that ending), or any other archive (names as MEMBER/NAME).
// Members that are no checkpoint are passed over. Throws Errc::unsupported where none is one.
Checkpoint read_archive(const archive::Zip& zip, const OpenOptions& options, std::uint64_t depth);

}  // namespace ballast
