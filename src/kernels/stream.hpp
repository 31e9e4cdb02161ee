// Writing around the cache.
#pragma once

#include <cstddef>
#include <cstring>

namespace ballast::kernels {

inline constexpr std::size_t kCacheLine = 64;

// The first and the last bytes, which between them may overlap.
template <std::size_t kBytes>
inline void copy_ends(std::byte* out, const std::byte* in, std::size_t size) noexcept {
  std::memcpy(out, in, kBytes);
  std::memcpy(out + size - kBytes, in + size - kBytes, kBytes);
}

// memcpy of not so many bytes: without a call, and without the string instructions that compilers choose where they see
// a bound, with which a tile took twice as long.
inline void copy_short(std::byte* out, const std::byte* in, std::size_t size) noexcept {
  for (; size > 64; size -= 64, out += 64, in += 64) std::memcpy(out, in, 64);
  if (size >= 32) return copy_ends<32>(out, in, size);
  if (size >= 16) return copy_ends<16>(out, in, size);
  if (size >= 8) return copy_ends<8>(out, in, size);
  if (size >= 4) return copy_ends<4>(out, in, size);
  if (size >= 2) return copy_ends<2>(out, in, size);
  if (size == 1) *out = *in;
}

// memcpy with streaming stores. After the last of them, finish_streaming() before another thread is told of the bytes.
//
// Only whole lines are streamed. Half a line takes as long as several whole ones, and what shares a line with its
// neighbours can wait in the cache until they have written theirs.
void stream_copy(std::byte* out, const std::byte* in, std::size_t size) noexcept;
void finish_streaming() noexcept;

// The first lines of what will be read next, from where the hardware takes over.
inline void prefetch_ahead(const std::byte* next, std::size_t size) noexcept {
  constexpr std::size_t kMost = 8 * kCacheLine;
  for (std::size_t i = 0; i < size && i < kMost; i += kCacheLine) __builtin_prefetch(next + i, 0, 2);
}

}  // namespace ballast::kernels
