// Transposing a matrix of small elements, tile by tile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ballast::kernels {

// A tile is this many columns of the source, and of each this many bytes.
inline constexpr std::size_t kTileColumns = 256;
inline constexpr std::size_t kTileRowBytes = 128;
inline constexpr std::size_t kLargestInTile = 16;  // larger elements are copied one by one

// A matrix: where it begins, and how many bytes lie between its lines.
struct MatrixOut {
  std::byte* begin;
  std::uint64_t stride;
};
struct MatrixIn {
  const std::byte* begin;
  std::int64_t stride;
};

// out[r][c] = in[c][r] for r < rows and c < columns, of elements of any size. Elements follow each other along c in
// `out` and along r in `in`. `copy` writes the finished pieces of rows: memcpy, or stream_copy where the output is
// large.
void transpose(MatrixOut out, MatrixIn in, std::uint64_t rows, std::uint64_t columns, std::uint64_t element_bytes,
               void (*copy)(std::byte* out, const std::byte* in, std::size_t size)) noexcept;

}  // namespace ballast::kernels
