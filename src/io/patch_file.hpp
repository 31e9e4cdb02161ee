// Changing the first bytes of a file where they lie, so that whoever looks sees the old ones or the new ones, also
// after a crash.
//
// What lies in one block of the disk changes at once. Before more than that is changed, both versions are put aside as
// .NAME.ballast-undo; if the change is cut off, `undo_cut_off_patch` puts the old one back.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <ballast/source.hpp>

namespace ballast::io {

// Whether a path is a regular file that no other name and no link leads to: what is changed there, is changed there
// only.
bool has_one_name(const std::string& path);

// Overwrites bytes that exist, and syncs them where `durable`. Throws Errc::changed, and changes nothing, where the
// file of that name is no longer the one that `source` was opened from, or no longer what it was.
void patch_file(const Source& source, std::span<const std::byte> bytes, bool durable);

// Whether there is something to put back.
bool has_cut_off_patch(const std::string& path);

// Puts it back, unless the file has been changed by others since.
void undo_cut_off_patch(const std::string& path);

}  // namespace ballast::io
