// A tensor's bytes as zstd frames of split byte planes, and the table by which the frames are found.
//
//   frame | frame | ... | seek table
//
// Each frame is a standard zstd frame with a checksum, and holds a chunk of the bytes: 1 MiB, the last one less. It
// decompresses to the byte planes of the chunk (kernels/planes.hpp): floating numbers are rotated left by a bit, then
// the lowest bytes of all elements are stored, then the next ones. The seek table is the one of zstd's seekable format,
// a frame that other decoders skip, so `zstd -d` also reads the whole:
//   1. magic 0x184D2A5E       u32
//   2. bytes that follow      u32
//   3. for each frame         its own bytes u32, the bytes of its chunk u32
//   4. number of frames       u32
//   5. descriptor             u8, 0: the table has no checksums
//   6. magic 0x8F92EAB1       u32
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ballast/dtype.hpp>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace ballast {

// Large enough to be worth a frame, and small enough that a thread has a few chunks in memory, whatever the dtype. The
// size is a part of the format: readers rely on it. Elements of 1, 2, 4, 8 and 16 bytes fill it exactly.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
// No frame is larger than this: a chunk that does not shrink, and what zstd puts around it.
inline constexpr std::size_t kMostFrameBytes = kChunkBytes + (std::size_t{8} << 10);

// The byte planes of a dtype.
struct Planes {
  std::size_t count = 1;         // one for each byte of an element; one if elements share bytes
  std::size_t number_bytes = 0;  // of a floating number (a complex element has two); 0 if nothing is rotated

  void split(std::span<const std::byte> elements, std::span<std::byte> planes) const noexcept;
  void join(std::span<std::byte> planes, std::span<std::byte> elements) const noexcept;  // rotates the planes, too
};
Planes planes_of(DType dtype) noexcept;

constexpr std::uint64_t chunk_count(std::uint64_t bytes) noexcept {
  return bytes / kChunkBytes + (bytes % kChunkBytes != 0 ? 1 : 0);
}
constexpr std::uint64_t seek_table_bytes(std::uint64_t chunks) noexcept { return 17 + 8 * chunks; }

std::vector<std::byte> seek_table(std::span<const std::uint32_t> frame_bytes, std::uint64_t bytes);

// Returns where each frame begins, and last where the table begins. `table` stands for `bytes` bytes and begins at
// offset `table_offset` of the packed bytes. Throws Errc::malformed if it is not the table of such frames.
std::vector<std::uint64_t> parse_seek_table(std::span<const std::byte> table, std::uint64_t table_offset,
                                            std::uint64_t bytes);

// Makes frames, one at a time. For one thread.
class FramePacker {
 public:
  FramePacker();

  // The frame of a chunk that is split into `plane_count` planes; valid until the next call. The same chunk always
  // gives the same frame.
  std::span<const std::byte> pack(std::span<const std::byte> planes, std::size_t plane_count);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::unique_ptr<std::byte[]> frame_;
};

// The inverse of FramePacker.
class FrameUnpacker {
 public:
  FrameUnpacker();

  // Fills `planes` with the content of the frame. Throws Errc::malformed if it is not one frame of exactly as many
  // bytes.
  void unpack(std::span<const std::byte> frame, std::span<std::byte> planes);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace ballast
