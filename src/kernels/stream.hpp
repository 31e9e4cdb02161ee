// Writes around the cache.
#pragma once

#include <cstddef>
#include <cstring>

namespace ballast::kernels {

inline constexpr std::size_t kCacheLine = 64;

// Copies the first and the last kBytes bytes, which may overlap.
template <std::size_t kBytes>
inline void copy_ends(std::byte* out, const std::byte* in, std::size_t size) noexcept {
  std::memcpy(out, in, kBytes);
  std::memcpy(out + size - kBytes, in + size - kBytes, kBytes);
}

// memcpy of a small number of bytes, without a call, and without the string instructions that compilers choose if they
// see a bound: with those, a tile took twice as long.
inline void copy_short(std::byte* out, const std::byte* in, std::size_t size) noexcept {
  for (; size > 64; size -= 64, out += 64, in += 64) std::memcpy(out, in, 64);
  if (size >= 32) return copy_ends<32>(out, in, size);
  if (size >= 16) return copy_ends<16>(out, in, size);
  if (size >= 8) return copy_ends<8>(out, in, size);
  if (size >= 4) return copy_ends<4>(out, in, size);
  if (size >= 2) return copy_ends<2>(out, in, size);
  if (size == 1) *out = *in;
}

// memcpy with streaming stores. After the last stream_copy(), call finish_streaming() before another thread is told of
// the bytes.
//
// Only whole lines are streamed. Half a line takes as long as several whole ones, and the part of a line that
// neighbours share can wait in the cache until they have written their parts.
void stream_copy(std::byte* out, const std::byte* in, std::size_t size) noexcept;
void finish_streaming() noexcept;

// Fetches the first lines of the bytes that will be read next; from there the hardware prefetcher takes over.
inline void prefetch_ahead(const std::byte* next, std::size_t size) noexcept {
  constexpr std::size_t kMost = 8 * kCacheLine;
  for (std::size_t i = 0; i < size && i < kMost; i += kCacheLine) __builtin_prefetch(next + i, 0, 2);
}

// For a loop that reads `size` bytes at `in` next and streams its output: fetches as many bytes 2 KiB further on, which
// may lie past the end. The hardware prefetcher stops at the end of a page. Casts of 16 bits to 32 got 0.95 of the
// speed of a fill with it, and 0.92 without; decoders of blocks, which read less, gained nothing.
inline void fetch_further_on(const void* in, std::size_t size) noexcept {
  constexpr std::size_t kAhead = 2048;
  const auto* next = static_cast<const std::byte*>(in) + kAhead;
  for (std::size_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(next + i);
}

}  // namespace ballast::kernels
