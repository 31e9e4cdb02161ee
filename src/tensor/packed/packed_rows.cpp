#include "tensor/packed/packed_rows.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "tensor/derived_storage.hpp"
#include "tensor/packed/row_formula.hpp"

namespace ballast {
namespace {

bool is_flat(const PackedRows& rows) {
  const auto is_so = [&](const GroupNumbers& numbers) { return numbers.is_flat(rows.columns); };
  const bool has_gaps = rows.rows_in_byte != 1 || rows.row_bytes * 8 != rows.columns * rows.codes.bits;
  return !has_gaps && is_so(rows.scale) && (!rows.zero || is_so(*rows.zero)) && (!rows.bias || is_so(*rows.bias));
}

std::vector<Tensor> sources_of(const PackedRows& rows) {
  std::vector<Tensor> sources;
  sources.reserve(2);
  sources.push_back(rows.packed);
  const auto add = [&](const GroupNumbers& numbers) {
    sources.push_back(numbers.values);
    if (numbers.group_of) sources.push_back(*numbers.group_of);
    if (numbers.multiplier) sources.push_back(*numbers.multiplier);
    if (numbers.divisor) sources.push_back(*numbers.divisor);
  };
  add(rows.scale);
  if (rows.zero) add(*rows.zero);
  if (rows.bias) add(*rows.bias);
  return sources;
}

void prefetch_numbers(const GroupNumbers& numbers, std::uint64_t first_row, std::uint64_t last_row) {
  const std::uint64_t width = info(numbers.values.dtype()).block_bytes * numbers.in_line;
  const std::uint64_t first = numbers.line_of(first_row), end = numbers.line_of(last_row) + 1;
  const ByteRange range{first * width, (end - first) * width};
  numbers.values.prefetch(std::span(&range, 1));
}

// How many columns are made together: as few as are worth it, so that a slice of a row does not cost the row.
std::uint64_t columns_in_block(const PackedRows& rows) {
  constexpr std::uint64_t kFew = 512;
  std::uint64_t columns = rows.columns;
  const auto are_whole = [&](std::uint64_t some) {
    return rows.codes.bytes_of(some) * (rows.columns / some) == rows.row_bytes;
  };
  while (rows.rows_in_byte == 1 && columns % 2 == 0 && columns / 2 >= kFew && are_whole(columns / 2)) columns /= 2;
  return columns;
}

// A block is some columns of a row, or all of the rows that share bytes.
class PackedRowsStorage final : public BlockwiseStorage {
 public:
  PackedRowsStorage(PackedRows rows, std::vector<Tensor> sources, std::uint64_t columns)
      : BlockwiseStorage(
            std::move(sources), "dequantized from " + rows.scheme,
            static_cast<std::size_t>(columns == rows.columns ? rows.row_bytes : rows.codes.bytes_of(columns)),
            static_cast<std::size_t>(columns * rows.rows_in_byte * info(rows.dtype).block_bytes), Making::in_steps),
        rows_(std::move(rows)),
        block_columns_(columns),
        is_flat_(ballast::is_flat(rows_)) {
    for (unsigned i = 0; i < rows_.rows_in_byte && rows_.rows_in_byte > 1; ++i) {
      codes_.push_back(rows_.codes);
      codes_.back().field.shift += i * 8 / rows_.rows_in_byte;
    }
  }

  // Finds groups that are not there before anything else is read.
  void prepare(const Progress& progress) const override {
    BlockwiseStorage::prepare(progress);
    groups();
  }

  // The numbers are as far away as the codes.
  void prefetch(std::span<const ByteRange> ranges) const override {
    BlockwiseStorage::prefetch(ranges);
    const std::uint64_t row_bytes = rows_.columns * info(rows_.dtype).block_bytes;
    for (const ByteRange& range : ranges) {
      if (range.size == 0) continue;
      const std::uint64_t first = range.offset / row_bytes, last = (range.offset + range.size - 1) / row_bytes;
      prefetch_numbers(rows_.scale, first, last);
      if (rows_.zero) prefetch_numbers(*rows_.zero, first, last);
      if (rows_.bias) prefetch_numbers(*rows_.bias, first, last);
    }
  }

 private:
  // The blocks may begin and end inside rows: the rows between these are made together.
  Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::uint64_t width = info(rows_.dtype).block_bytes;
    std::uint64_t element = first * block_columns_ * rows_.rows_in_byte;
    Overflows overflows;
    for (std::uint64_t size = 0; !out.empty(); element += size, out = out.subspan(size * width)) {
      const std::uint64_t left = out.size() / width, column = element % rows_.columns;
      MatrixPart part{element / rows_.columns, 1, column, std::min(rows_.columns - column, left)};
      if (column == 0) part.rows = std::max<std::uint64_t>(left / rows_.columns, 1);
      size = part.rows * part.columns;
      const bool is_whole = part.columns == rows_.columns;
      const std::uint64_t in_bytes =
          is_whole ? part.rows / rows_.rows_in_byte * rows_.row_bytes : rows_.codes.bytes_of(part.columns);
      const RowNumbers numbers(rows_, part, groups());
      if (is_flat_) part = {part.first_row, 1, part.first_column, size};
      const std::span codes = codes_.empty() ? std::span(&rows_.codes, 1) : std::span(codes_);
      overflows.add(unpack_part(rows_, codes, numbers, part, in, out.first(size * width)));
      in = in.subspan(static_cast<std::size_t>(in_bytes));
    }
    return overflows;
  }

  // Those of the scale; the zero points have the same.
  std::span<const std::uint32_t> groups() const {
    if (!rows_.scale.group_of) return {};
    groups_are_read_.run([&] { groups_ = read_groups(*rows_.scale.group_of, rows_.scale.in_line, rows_.weight); });
    return groups_;
  }

  PackedRows rows_;
  std::uint64_t block_columns_;
  bool is_flat_;
  std::vector<PackedCodes> codes_;  // of the rows that share bytes, if there are several
  mutable Once groups_are_read_;
  mutable std::vector<std::uint32_t> groups_;
};

}  // namespace

Tensor unpacked_rows(PackedRows rows) {
  const std::uint64_t columns = rows.columns;
  const std::uint64_t count = rows.row_bytes == 0 ? 0 : rows.packed.nbytes() / rows.row_bytes * rows.rows_in_byte;
  const Shape shape = {count, columns};
  const DType dtype = rows.dtype;
  const std::uint64_t size = fits(bytes_of(dtype, fits(shape.numel(), "the size of a weight")), "the size of a weight");
  if (size == 0) return Tensor(dtype, shape, nullptr);
  const std::uint64_t in_block = columns_in_block(rows);
  std::vector<Tensor> sources = sources_of(rows);
  const bool has_data = std::ranges::all_of(sources, [](const Tensor& tensor) { return tensor.has_data(); });
  if (!has_data) return Tensor(dtype, shape, meta_storage(size));
  return Tensor(dtype, shape, std::make_shared<PackedRowsStorage>(std::move(rows), std::move(sources), in_block));
}

}  // namespace ballast
