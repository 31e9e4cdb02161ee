// A tensor's bytes as zstd frames of split byte planes, and the table that they are found by.
//
//   frame | frame | ... | seek table
//
// Each is a standard zstd frame of its own, with a checksum, and holds a chunk of the bytes: 1 MiB, the last one less.
// It decompresses to the byte planes of the chunk (kernels/planes.hpp): floating numbers are rotated left by a bit,
// then the lowest bytes of all elements are stored, then the next ones. The seek table is the one of zstd's seekable
// format, a frame that others skip, so `zstd -d` reads the whole as well:
//   1. magic 0x184D2A5E       u32
//   2. bytes that follow      u32
//   3. of each frame          its own bytes u32, the bytes of its chunk u32
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

// As large as is worth a frame; a thread has a few chunks in memory, whatever the dtype. Part of the format: readers
// take it for granted. Elements of 1, 2, 4, 8 and 16 bytes fill it without a rest.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
// What no frame exceeds: a chunk that does not shrink, and what zstd puts around it.
inline constexpr std::size_t kMostFrameBytes = kChunkBytes + (std::size_t{8} << 10);

// The byte planes of a dtype.
struct Planes {
  std::size_t count = 1;         // one for each byte of an element; one where elements share bytes
  std::size_t number_bytes = 0;  // of the floating numbers, two in a complex element; 0 where nothing is rotated

  void split(std::span<const std::byte> elements, std::span<std::byte> planes) const noexcept;
  void join(std::span<std::byte> planes, std::span<std::byte> elements) const noexcept;  // turns the planes, too
};
Planes planes_of(DType dtype) noexcept;

constexpr std::uint64_t chunk_count(std::uint64_t bytes) noexcept {
  return bytes / kChunkBytes + (bytes % kChunkBytes != 0 ? 1 : 0);
}
constexpr std::uint64_t seek_table_bytes(std::uint64_t chunks) noexcept { return 17 + 8 * chunks; }

std::vector<std::byte> seek_table(std::span<const std::uint32_t> frame_bytes, std::uint64_t bytes);

// Where each frame begins, and behind the last one where the table does. `table` stands for `bytes` bytes and begins at
// `table_offset` of the packed ones. Throws Errc::malformed where it is not the table of such frames.
std::vector<std::uint64_t> parse_seek_table(std::span<const std::byte> table, std::uint64_t table_offset,
                                            std::uint64_t bytes);

// Makes frames, one at a time. For one thread.
class FramePacker {
 public:
  FramePacker();

  // The frame of a chunk that is split into so many planes; valid until the next one. The same chunk gives the same
  // frame.
  std::span<const std::byte> pack(std::span<const std::byte> planes, std::size_t plane_count);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::unique_ptr<std::byte[]> frame_;
};

// The inverse.
class FrameUnpacker {
 public:
  FrameUnpacker();

  // Fills `planes` with what is in the frame. Throws Errc::malformed where it is not one frame of just so many bytes.
  void unpack(std::span<const std::byte> frame, std::span<std::byte> planes);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace ballast
