#include "tensor/owned_memory.hpp"

#include <cstdlib>
#include <new>

#include "core/checked.hpp"
#include "core/huge_pages.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kCacheLine = 64;

}  // namespace

OwnedMemory::OwnedMemory(std::uint64_t size_bytes) : size_(size_bytes) {
  const std::uint64_t alignment = size_bytes >= 2 * kHugePage ? kHugePage : kCacheLine;
  const auto rounded = checked_align_up(size_bytes == 0 ? 1 : size_bytes, alignment);
  if (!rounded) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, *rounded);
  if (memory == nullptr) throw std::bad_alloc();
  prefer_huge_pages(memory, *rounded);
  data_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), std::free);
}

}  // namespace ballast
