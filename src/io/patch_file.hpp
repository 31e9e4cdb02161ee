// Changes the first bytes of a file in place, so that every reader sees the old bytes or the new ones, also after a
// crash.
//
// Bytes in one block of the disk change all at once. Before more than one block is changed, both versions are put aside
// as .NAME.ballast-undo; if the change is cut off, `undo_cut_off_patch` puts the old version back.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <ballast/source.hpp>

namespace ballast::io {

// Whether a path is a regular file that no other name and no link leads to, so that a change of the file changes only
// this path.
bool has_one_name(const std::string& path);

// Overwrites bytes that exist, and syncs them if `durable`. Throws Errc::changed, and changes nothing, if the file of
// that name is no longer the one that `source` was opened from, or has been changed since.
void patch_file(const Source& source, std::span<const std::byte> bytes, bool durable);

// Whether there is an old version to put back.
bool has_cut_off_patch(const std::string& path);

// Puts the old version back, unless others have changed the file since.
void undo_cut_off_patch(const std::string& path);

}  // namespace ballast::io
