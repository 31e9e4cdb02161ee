// Zip archives at the end of files that begin as something else.
#pragma once

#include <cstdint>
#include <optional>

#include <ballast/source.hpp>

namespace ballast::archive {

// The offset of an end record in the last 65 557 bytes of the file, if a directory with a member lies where the record
// says: programs that look for a zip from the end would open the file as one. An archive without members holds nothing,
// and does not count.
//
// Among random bytes, one file in 2^47 has such a record: there are 2^16 positions for the four bytes of its signature,
// and for each of them two positions where the four bytes of a directory's signature may lie.
std::optional<std::uint64_t> find_zip_at_end(const Source& source);

}  // namespace ballast::archive
