// What the system already holds of a file, and where the file lies: how it is best read.
#pragma once

#include <cstdint>

namespace ballast::io {

// Whether less than half of the range is in the page cache, by a few samples of it. False where the file system does
// not say. The descriptor is best one that nobody else reads from: its read-ahead is turned off.
bool is_cold(int descriptor, std::uint64_t offset, std::uint64_t size);

// Whether the page of one byte is known not to be in the page cache. The look may make the system read it.
bool is_absent(int descriptor, std::uint64_t offset);

// NFS, SMB, 9p, FUSE and the like, where a page fault is a journey.
bool is_on_network(int descriptor);

}  // namespace ballast::io
