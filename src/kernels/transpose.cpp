#include "kernels/transpose.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/stream.hpp"

namespace ballast::kernels {
namespace {

// The compiler's own vector types of 16 bytes, which work on every x86-64 and every ARMv8.
template <class T>
using Vector [[gnu::vector_size(16)]] = T;

template <class T>
struct Lanes;
template <>
struct Lanes<std::uint8_t> {
  using V = Vector<std::uint8_t>;
  static V low(V a, V b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static V high(V a, V b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
};
template <>
struct Lanes<std::uint16_t> {
  using V = Vector<std::uint16_t>;
  static V low(V a, V b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
  static V high(V a, V b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
};
template <>
struct Lanes<std::uint32_t> {
  using V = Vector<std::uint32_t>;
  static V low(V a, V b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  static V high(V a, V b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};
template <>
struct Lanes<std::uint64_t> {
  using V = Vector<std::uint64_t>;
  static V low(V a, V b) { return __builtin_shufflevector(a, b, 0, 2); }
  static V high(V a, V b) { return __builtin_shufflevector(a, b, 1, 3); }
};

struct Block16 {
  std::uint64_t halves[2];
};
template <>
struct Lanes<Block16> {
  using V = Block16;  // a square of one element: there is nothing to interleave
  static V low(V a, V) { return a; }
  static V high(V, V b) { return b; }
};

// A square of as many vectors as a vector has elements. To transpose it, the first half of the rows is interleaved with
// the second half, as often as the number of rows can be halved.
template <class T>
void transpose_square(std::byte* out, std::size_t out_stride, const std::byte* in, std::size_t in_stride) {
  constexpr std::size_t kCount = 16 / sizeof(T);
  using V = typename Lanes<T>::V;
  V rows[kCount], mixed[kCount];
  for (std::size_t i = 0; i < kCount; ++i) std::memcpy(&rows[i], in + i * in_stride, 16);
#pragma GCC unroll 4
  for (std::size_t half = kCount / 2, round = kCount; round > 1; round /= 2) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < half; ++i) {
      mixed[2 * i] = Lanes<T>::low(rows[i], rows[i + half]);
      mixed[2 * i + 1] = Lanes<T>::high(rows[i], rows[i + half]);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kCount; ++i) rows[i] = mixed[i];
  }
  for (std::size_t i = 0; i < kCount; ++i) std::memcpy(out + i * out_stride, &rows[i], 16);
}

// Fetches all of these bytes into the second-level cache: in the first level, lines that lie a power of two apart would
// not stay.
void prefetch(const std::byte* begin, std::size_t size) {
  for (std::size_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(begin + i, 0, 2);
  __builtin_prefetch(begin + size - 1, 0, 2);
}

// Lines that lie a power of two apart fall into the same few sets of the cache and push each other out. So a tile is
// read column by column into a buffer, and from there it is transposed and written a strip of rows at a time.
template <class T>
class Tile {
 public:
  static constexpr std::size_t kRows = kTileRowBytes / sizeof(T);
  static constexpr std::size_t kStripRows = 16 / sizeof(T);

  void read(MatrixIn from, std::size_t rows, std::size_t columns) {
    constexpr std::size_t kAhead = 16;
    for (std::size_t c = 0; c < columns; ++c, from.begin += from.stride) {
      if (c + kAhead < columns) prefetch(from.begin + std::int64_t{kAhead} * from.stride, rows * sizeof(T));
      copy_short(columns_ + c * kColumnStride, from.begin, rows * sizeof(T));
    }
  }

  // Transposes whole squares: the bytes beside the tile in the buffer are transposed too, and never written.
  void turn_strip(std::size_t row, std::size_t columns) {
    for (std::size_t c = 0; c < columns; c += kStripRows) {
      transpose_square<T>(strip(0) + c * sizeof(T), kStripStride, columns_ + c * kColumnStride + row * sizeof(T),
                          kColumnStride);
    }
  }

  void write_strip(MatrixOut to, std::size_t rows, std::size_t columns) const {
    for (std::size_t r = 0; r < rows; ++r) copy_short(to.begin + r * to.stride, strip(r), columns * sizeof(T));
  }

  // Writes a strip around the cache. If two tiles meet inside a line of the output, the first tile's part of the line
  // is kept for the second tile to stream: as two parts, the line would be read and written twice.
  void stream_strip(MatrixOut to, std::size_t row, std::size_t rows, std::size_t columns, bool is_first, bool is_last) {
    for (std::size_t r = 0; r < rows; ++r) {
      const auto begin = reinterpret_cast<std::uintptr_t>(to.begin + r * to.stride), end = begin + columns * sizeof(T);
      const std::size_t before = is_first ? 0 : begin % kCacheLine, after = is_last ? 0 : end % kCacheLine;
      std::byte* const kept = kept_ + (row + r) * kCacheLine;
      if (before != 0) std::memcpy(strip(r) - kCacheLine, kept, kCacheLine);
      if (after != 0) std::memcpy(kept, strip(r) + columns * sizeof(T) - kCacheLine, kCacheLine);
      stream_copy(to.begin + r * to.stride - before, strip(r) - before, before + columns * sizeof(T) - after);
    }
  }

 private:
  static constexpr std::size_t kColumnStride = kTileRowBytes + kCacheLine;
  static constexpr std::size_t kStripStride = kCacheLine + kTileColumns * sizeof(T);

  std::byte* strip(std::size_t r) { return strip_ + kCacheLine + r * kStripStride; }
  const std::byte* strip(std::size_t r) const { return strip_ + kCacheLine + r * kStripStride; }

  alignas(kCacheLine) std::byte columns_[kTileColumns * kColumnStride];
  alignas(kCacheLine) std::byte strip_[kStripRows * kStripStride];
  alignas(kCacheLine) std::byte kept_[kRows * kCacheLine];
};

// The matrix cut into tiles, in the order in which the tiles are done: along a band of rows, then the next band.
template <class T>
class Tiling {
 public:
  Tiling(MatrixOut out, MatrixIn in, std::uint64_t rows, std::uint64_t columns)
      : out_(out), in_(in), rows_(rows), columns_(columns) {}

  bool is_done() const { return row_ >= rows_; }
  bool begins_rows() const { return column_ == 0; }
  bool ends_rows() const { return column_ + width() == columns_; }

  // A tile ends at the end of a line of the cache, both in the source and in the output.
  std::size_t height() const {
    return std::min<std::uint64_t>(Tile<T>::kRows - elements_into_line(in_.begin + row_ * sizeof(T)), rows_ - row_);
  }
  std::size_t width() const {
    return std::min<std::uint64_t>(kTileColumns - elements_into_line(to().begin), columns_ - column_);
  }

  MatrixOut to() const { return {out_.begin + row_ * out_.stride + column_ * sizeof(T), out_.stride}; }
  MatrixIn from() const {
    return {in_.begin + row_ * sizeof(T) + static_cast<std::int64_t>(column_) * in_.stride, in_.stride};
  }

  void next() {
    column_ += width();
    if (column_ < columns_) return;
    column_ = 0;
    row_ += height();
  }

 private:
  static std::size_t elements_into_line(const std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at) % kCacheLine / sizeof(T);
  }

  MatrixOut out_;
  MatrixIn in_;
  std::uint64_t rows_, columns_;
  std::uint64_t row_ = 0, column_ = 0;
};

// Prefetches the columns of a tile a few at a time, so that all have been fetched after a number of turns. More
// requests at once than memory can answer would hold up the work that is done meanwhile.
template <class T>
class Prefetch {
 public:
  Prefetch(const Tiling<T>& tile, std::size_t turns) {
    if (tile.is_done()) return;
    from_ = tile.from();
    bytes_ = tile.height() * sizeof(T);
    left_ = tile.width();
    each_turn_ = (left_ + turns - 1) / turns;
  }

  void turn() {
    const std::size_t count = std::min(each_turn_, left_);
    left_ -= count;
    for (std::size_t c = 0; c < count; ++c, from_.begin += from_.stride) prefetch(from_.begin, bytes_);
  }

 private:
  MatrixIn from_{};
  std::size_t bytes_ = 0, left_ = 0, each_turn_ = 0;
};

template <class T>
void transpose_by_tiles(MatrixOut out, MatrixIn in, std::uint64_t rows, std::uint64_t columns, bool stream) {
  constexpr std::size_t kStripRows = Tile<T>::kStripRows;
  Tile<T> tile;  // not initialized: clearing 100 KiB would take longer than a small matrix
  Tiling<T> at(out, in, rows, columns);
  while (!at.is_done()) {
    const std::size_t height = at.height(), width = at.width();
    const bool is_first = at.begins_rows(), is_last = at.ends_rows();
    MatrixOut to = at.to();
    tile.read(at.from(), height, width);
    at.next();
    // While strips are transposed and written, the next tile comes from memory.
    Prefetch<T> next(at, (height + kStripRows - 1) / kStripRows);
    for (std::size_t r = 0; r < height; r += kStripRows, to.begin += kStripRows * to.stride) {
      next.turn();
      tile.turn_strip(r, width);
      const std::size_t strip = std::min(kStripRows, height - r);
      if (stream) {
        tile.stream_strip(to, r, strip, width, is_first, is_last);
      } else {
        tile.write_strip(to, strip, width);
      }
    }
  }
}

// Larger elements are copied as they are, so many at once from one column that reading comes close to reading in order:
// for elements of 256 bytes in a large output, 64 KiB measured about 1.8 times as fast as 4 KiB. If the output is
// streamed, they are first joined to pieces of rows, so that few lines of the cache are written in parts; with more
// than 8 columns at once, short elements measured slower again.
void transpose_large(MatrixOut out, MatrixIn in, std::uint64_t rows, std::uint64_t columns, std::uint64_t size,
                     bool stream) {
  constexpr std::uint64_t kBandBytes = 65536, kPieceBytes = 1024, kMostJoined = 8;
  const std::uint64_t band = std::max<std::uint64_t>(1, kBandBytes / size);
  const std::uint64_t joined = stream ? std::clamp<std::uint64_t>(kPieceBytes / size, 1, kMostJoined) : 1;
  alignas(kCacheLine) std::byte piece[kPieceBytes];
  for (std::uint64_t row = 0; row < rows; row += band) {
    const std::uint64_t end = std::min(rows, row + band);
    for (std::uint64_t column = 0; column < columns; column += joined) {
      const std::uint64_t width = std::min(joined, columns - column);
      const std::byte* from = in.begin + static_cast<std::int64_t>(column) * in.stride + row * size;
      for (std::uint64_t c = 0; c < width; ++c) {
        prefetch_ahead(from + static_cast<std::int64_t>(width + c) * in.stride, (end - row) * size);
      }
      std::byte* to = out.begin + row * out.stride + column * size;
      for (std::uint64_t r = row; r < end; ++r, to += out.stride, from += size) {
        if (!stream) {
          copy_short(to, from, size);
        } else if (joined == 1) {
          stream_copy(to, from, size);
        } else {
          for (std::uint64_t c = 0; c < width; ++c) {
            copy_short(piece + c * size, from + static_cast<std::int64_t>(c) * in.stride, size);
          }
          stream_copy(to, piece, width * size);
        }
      }
    }
  }
}

}  // namespace

void transpose(MatrixOut out, MatrixIn in, std::uint64_t rows, std::uint64_t columns, std::uint64_t element_bytes,
               bool stream) noexcept {
  switch (element_bytes) {
    case 1: return transpose_by_tiles<std::uint8_t>(out, in, rows, columns, stream);
    case 2: return transpose_by_tiles<std::uint16_t>(out, in, rows, columns, stream);
    case 4: return transpose_by_tiles<std::uint32_t>(out, in, rows, columns, stream);
    case 8: return transpose_by_tiles<std::uint64_t>(out, in, rows, columns, stream);
    case 16: return transpose_by_tiles<Block16>(out, in, rows, columns, stream);
    default: return transpose_large(out, in, rows, columns, element_bytes, stream);
  }
}

}  // namespace ballast::kernels
