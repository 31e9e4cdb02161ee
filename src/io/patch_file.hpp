// Changing a few bytes of a file where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ballast::io {

// Whether a path is a regular file that no other name and no link leads to: what is changed there, is changed there
// only.
bool has_one_name(const std::string& path);

// Overwrites bytes that exist, and syncs them where `durable`. Not atomic: a crash meanwhile may leave some of each.
void patch_file(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes, bool durable);

}  // namespace ballast::io
