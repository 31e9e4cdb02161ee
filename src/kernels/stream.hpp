// Writing around the cache.
#pragma once

#include <cstddef>

namespace ballast::kernels {

// memcpy with streaming stores. After the last of them, finish_streaming() before another thread is told of the bytes.
void stream_copy(std::byte* out, const std::byte* in, std::size_t size) noexcept;
void finish_streaming() noexcept;

// The first lines of what will be read next, from where the hardware takes over.
inline void prefetch_ahead(const std::byte* next, std::size_t size) noexcept {
  constexpr std::size_t kLine = 64, kMost = 8 * kLine;
  for (std::size_t i = 0; i < size && i < kMost; i += kLine) __builtin_prefetch(next + i, 0, 2);
}

}  // namespace ballast::kernels
