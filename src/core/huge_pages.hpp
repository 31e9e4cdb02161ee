// Fresh memory costs a page fault for every 4 KiB, which for large blocks is more than filling them. In pages of 2 MiB
// it does not.
#pragma once

#include <cstddef>

namespace ballast {

// To be called before the memory is touched. Advice: small blocks, and kernels without huge pages, are left as they
// are.
void prefer_huge_pages(void* memory, std::size_t size) noexcept;

}  // namespace ballast
