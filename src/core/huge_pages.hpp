// Fresh memory costs a page fault for every 4 KiB. For a large block, these faults take longer than filling the block;
// with pages of 2 MiB, they do not.
#pragma once

#include <cstddef>

namespace ballast {

// Call this before the memory is touched. It is advice only: it changes nothing for small blocks, or on kernels without
// huge pages.
void prefer_huge_pages(void* memory, std::size_t size) noexcept;

}  // namespace ballast
