// How much of a file is in the page cache, and whether the file lies on a network: both decide how it is best read.
#pragma once

#include <cstdint>

namespace ballast::io {

// Whether less than half of the range is in the page cache, by a few samples of it. False if the file system does not
// say. Turns off the read-ahead of the descriptor, so nobody else should read from it.
bool is_cold(int descriptor, std::uint64_t offset, std::uint64_t size);

// Whether the page of one byte is known not to be in the page cache. This check may make the system read the page.
bool is_absent(int descriptor, std::uint64_t offset);

// NFS, SMB, 9p, FUSE and the like, on which a page fault takes a round trip.
bool is_on_network(int descriptor);

}  // namespace ballast::io
