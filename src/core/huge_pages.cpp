#include "core/huge_pages.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace ballast {

void prefer_huge_pages(void* memory, std::size_t size) noexcept {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  // Only whole huge pages inside the block: the memory beside the block belongs to others.
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + size) / kHugePage * kHugePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace ballast
