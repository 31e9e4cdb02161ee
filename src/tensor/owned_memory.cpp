#include "tensor/owned_memory.hpp"

#include <cstdlib>
#include <new>

#include "core/checked.hpp"
#include "core/huge_pages.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kCacheLine = 64;

}  // namespace

OwnedMemory::OwnedMemory(std::uint64_t size_bytes, std::uint64_t phase) : size_(size_bytes) {
  const bool large = size_bytes >= 2 * kHugePage;
  const std::uint64_t alignment = large ? kHugePage : phase == 0 ? kCacheLine : kPage;
  const auto needed = checked_add(size_bytes == 0 ? 1 : size_bytes, phase);
  const auto rounded = needed ? checked_align_up(*needed, alignment) : std::nullopt;
  if (!rounded) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, *rounded);
  if (memory == nullptr) throw std::bad_alloc();
  prefer_huge_pages(memory, *rounded);
  const std::shared_ptr<std::byte> whole(static_cast<std::byte*>(memory), std::free);
  data_ = std::shared_ptr<std::byte>(whole, whole.get() + phase);
}

}  // namespace ballast
