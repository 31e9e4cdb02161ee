#include "tensor/packed/transposed_storage.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/checked.hpp"
#include "core/scratch.hpp"
#include "kernels/transpose.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

// A strip has so many columns, unless they are more than kStripBytes. Fewer columns are read in shorter runs, and more
// do not fit the cache.
constexpr std::uint64_t kStripColumns = 256;
constexpr std::uint64_t kStripBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kPanelRows = 256;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

class TransposedStorage final : public DerivedStorage {
 public:
  explicit TransposedStorage(MatricesInParts source)
      : DerivedStorage(source.from, "transposed"),
        source_(std::move(source)),
        width_(info(source_.dtype).block_bytes),
        row_bytes_(source_.rows * width_),
        strip_(round_up(std::clamp<std::uint64_t>(kStripBytes / row_bytes_, 1, kStripColumns), source_.column_unit)) {}

  std::uint64_t size_bytes() const override { return source_.matrices * source_.columns * row_bytes_; }
  std::uint64_t granule() const override { return std::min(strip_, source_.columns) * row_bytes_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const Strip strip = strip_at(offset, out.size());
      const std::uint64_t skip = offset - strip.offset, size = std::min<std::uint64_t>(strip.bytes - skip, out.size());
      const std::span here = out.first(static_cast<std::size_t>(size));
      if (size == strip.bytes) {
        make(strip, here);
      } else {
        const Scratch whole(static_cast<std::size_t>(strip.bytes));
        make(strip, whole.bytes());
        std::memcpy(here.data(), whole.bytes().data() + skip, here.size());
      }
      offset += size;
      out = out.subspan(here.size());
    }
  }

 private:
  struct Strip {
    std::uint64_t matrix, first_column, columns;
    std::uint64_t offset, bytes;  // in the result
  };

  // The columns from a byte of the result on: as many as are asked for, in one strip of one matrix.
  Strip strip_at(std::uint64_t offset, std::uint64_t size) const {
    const std::uint64_t row = offset / row_bytes_, unit = source_.column_unit;
    const std::uint64_t end = (offset + size - 1) / row_bytes_ + 1 - row / source_.columns * source_.columns;
    Strip strip{row / source_.columns, row % source_.columns / unit * unit, 0, 0, 0};
    const std::uint64_t next = (strip.first_column / strip_ + 1) * strip_;
    strip.columns = std::min({round_up(end, unit), next, source_.columns}) - strip.first_column;
    strip.offset = (strip.matrix * source_.columns + strip.first_column) * row_bytes_;
    strip.bytes = strip.columns * row_bytes_;
    return strip;
  }

  void make(const Strip& strip, std::span<std::byte> out) const {
    const std::uint64_t line = strip.columns * width_;
    const Scratch panel(static_cast<std::size_t>(std::min(kPanelRows, source_.rows) * line));
    for (std::uint64_t row = 0; row < source_.rows; row += kPanelRows) {
      const std::uint64_t rows = std::min(kPanelRows, source_.rows - row);
      source_.read({strip.matrix * source_.rows + row, rows, strip.first_column, strip.columns},
                   panel.bytes().first(static_cast<std::size_t>(rows * line)));
      kernels::transpose({out.data() + row * width_, row_bytes_},
                         {panel.bytes().data(), static_cast<std::int64_t>(line)}, strip.columns, rows, width_, false);
    }
  }

  MatricesInParts source_;
  std::uint64_t width_, row_bytes_;
  std::uint64_t strip_;  // columns
};

}  // namespace

Tensor part_of(const Tensor& matrix, const MatrixPart& part) {
  const auto range = [](std::uint64_t from, std::uint64_t size) {
    return SliceIndex::range(static_cast<std::int64_t>(from), static_cast<std::int64_t>(from + size));
  };
  return matrix.slice({range(part.first_row, part.rows), range(part.first_column, part.columns)});
}

Tensor transposed(MatricesInParts matrices) {
  const DType dtype = matrices.dtype;
  const Shape shape = {matrices.matrices * matrices.columns, matrices.rows};
  const std::uint64_t size = fits(bytes_of(dtype, fits(shape.numel(), "the size of a weight")), "the size of a weight");
  if (size == 0) return Tensor(dtype, shape, nullptr);
  const bool has_data = std::ranges::all_of(matrices.from, [](const Tensor& tensor) { return tensor.has_data(); });
  if (!has_data) return Tensor(dtype, shape, meta_storage(size));
  return Tensor(dtype, shape, std::make_shared<TransposedStorage>(std::move(matrices)));
}

Tensor transposed(const Tensor& matrix, std::uint64_t matrices) {
  return transposed(MatricesInParts{
      .from = {matrix},
      .dtype = matrix.dtype(),
      .matrices = matrices,
      .rows = matrix.shape()[0] / std::max<std::uint64_t>(matrices, 1),
      .columns = matrix.shape()[1],
      .read = [matrix](const MatrixPart& part, std::span<std::byte> out) { part_of(matrix, part).read(0, out); },
  });
}

}  // namespace ballast
