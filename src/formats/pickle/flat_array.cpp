#include "formats/pickle/flat_array.hpp"

#include <sys/mman.h>

#include <cstdlib>

namespace ballast::pickle {
namespace {

constexpr std::size_t kMappedBytes = std::size_t{1} << 20;  // from this size on, an array has pages of its own

bool is_mapped(std::size_t bytes) { return bytes >= kMappedBytes; }

void* allocate_flat(std::size_t bytes) {
  if (!is_mapped(bytes)) return std::malloc(bytes);
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void free_flat(void* memory, std::size_t bytes) noexcept {
  if (is_mapped(bytes)) {
    munmap(memory, bytes);
  } else {
    std::free(memory);
  }
}

void* move_flat(void* memory, std::size_t bytes, std::size_t new_bytes) {
  if (is_mapped(bytes) && is_mapped(new_bytes)) {
    void* const moved = mremap(memory, bytes, new_bytes, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? nullptr : moved;
  }
  if (!is_mapped(bytes) && !is_mapped(new_bytes)) return std::realloc(memory, new_bytes);
  void* const moved = allocate_flat(new_bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, memory, std::min(bytes, new_bytes));
  free_flat(memory, bytes);
  return moved;
}

}  // namespace

void* resize_flat(void* memory, std::size_t bytes, std::size_t new_bytes) {
  if (new_bytes == 0) {
    free_flat(memory, bytes);
    return nullptr;
  }
  void* const resized = bytes == 0 ? allocate_flat(new_bytes) : move_flat(memory, bytes, new_bytes);
  if (resized == nullptr) throw std::bad_alloc();
  return resized;
}

}  // namespace ballast::pickle
