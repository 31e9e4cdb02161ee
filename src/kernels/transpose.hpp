// Transposes a matrix of small elements, tile by tile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ballast::kernels {

// A tile has at most this many columns of the source, and this many bytes of each column. Measured on 8192 x 8192
// elements of 2 bytes: 128 columns, or 512 bytes, take up to a tenth longer, 64 columns a third.
inline constexpr std::size_t kTileColumns = 256;
inline constexpr std::size_t kTileRowBytes = 256;

// A matrix: its first byte, and how many bytes lie between its lines.
struct MatrixOut {
  std::byte* begin;
  std::uint64_t stride;
};
struct MatrixIn {
  const std::byte* begin;
  std::int64_t stride;
};

// out[r][c] = in[c][r] for r < rows and c < columns, for elements of any size. Elements follow each other along c in
// `out` and along r in `in`. If the output is large, `stream` writes it by stream_copy.
void transpose(MatrixOut out, MatrixIn in, std::uint64_t rows, std::uint64_t columns, std::uint64_t element_bytes,
               bool stream) noexcept;

}  // namespace ballast::kernels
