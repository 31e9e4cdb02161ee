#include "tensor/packed/packed_rows.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "kernels/cast.hpp"
#include "kernels/packed/runs.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

using kernels::RunStep;

void round_on_the_way(DType dtype, std::span<float> values) {
  std::array<std::byte, kCodesAtOnce * sizeof(float)> buffer;
  const std::span rounded = std::span(buffer).first(values.size() * info(dtype).block_bytes);
  kernels::cast(DType::f32, dtype, std::as_bytes(values), rounded);
  kernels::cast(dtype, DType::f32, rounded, std::as_writable_bytes(values));
}

// The numbers of some rows, as many sets as the formula has.
struct RowNumbers {
  RowNumbers(const PackedRows& rows, std::uint64_t first, std::uint64_t count, std::span<const std::uint32_t> groups)
      : scale(rows.scale, first, count, groups) {
    if (rows.zero) zero.emplace(*rows.zero, first, count, groups);
    if (rows.bias) bias.emplace(*rows.bias, first, count);
  }
  RowNumbers(const PackedRows& rows, const RowPart& part)
      : scale(rows.scale, part.first_row, part.rows, part.first_column, part.columns) {
    if (rows.zero) zero.emplace(*rows.zero, part.first_row, part.rows, part.first_column, part.columns);
    if (rows.bias) bias.emplace(*rows.bias, part.first_row, part.rows, part.first_column, part.columns);
  }
  LoadedNumbers scale;
  std::optional<LoadedNumbers> zero{}, bias{};
};

// At most kCodesAtOnce elements of one row, or of several if all numbers are flat: `first` counts from the beginning of
// `row`.
Overflows unpack_some(const PackedRows& rows, const RowNumbers& numbers, std::uint64_t row, std::uint64_t first,
                      std::span<const std::byte> in, std::size_t count, std::span<std::byte> out) {
  std::array<float, kCodesAtOnce> buffer;
  const std::span values = std::span(buffer).first(count);
  decode_codes(rows.codes, in, values);
  const auto step = [&](RunStep what, const LoadedNumbers& loaded) {
    kernels::step_runs(what, values, loaded.of_row(row), loaded.columns_each(), first - loaded.first_column());
  };
  if (rows.zero) {
    step(RunStep::subtract, *numbers.zero);
    if (rows.rounded) round_on_the_way(*rows.rounded, values);
  }
  step(RunStep::multiply, numbers.scale);
  if (rows.bias) {
    if (rows.rounded) round_on_the_way(*rows.rounded, values);
    step(rows.subtracts_bias ? RunStep::subtract : RunStep::add, *numbers.bias);
  }
  if (rows.factor) kernels::step_runs(RunStep::multiply, values, &*rows.factor, count + 1);
  return kernels::cast(DType::f32, rows.dtype, std::as_bytes(values), out);
}

// Elements that follow each other, in pieces that fit a buffer.
Overflows unpack_run(const PackedRows& rows, const RowNumbers& numbers, std::uint64_t row, std::uint64_t first,
                     std::span<const std::byte> in, std::uint64_t count, std::span<std::byte> out) {
  const std::size_t width = info(rows.dtype).block_bytes;
  Overflows overflows;
  const std::size_t step = rows.codes.at_once();
  for (std::uint64_t done = 0; done < count; done += step) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(count - done, step));
    overflows.add(unpack_some(rows, numbers, row, first + done, in.subspan(rows.codes.bytes_of(done)), size,
                              out.subspan(done * width, size * width)));
  }
  return overflows;
}

bool is_flat(const PackedRows& rows) {
  const auto is_so = [&](const GroupNumbers& numbers) { return numbers.is_flat(rows.columns); };
  return rows.row_bytes * 8 == rows.columns * rows.codes.bits && is_so(rows.scale) &&
         (!rows.zero || is_so(*rows.zero)) && (!rows.bias || is_so(*rows.bias));
}

std::vector<Tensor> sources_of(const PackedRows& rows) {
  std::vector<Tensor> sources = {rows.packed};
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

// A block is a row.
class PackedRowsStorage final : public BlockwiseStorage {
 public:
  explicit PackedRowsStorage(PackedRows rows)
      : BlockwiseStorage(sources_of(rows), "dequantized from " + rows.scheme, static_cast<std::size_t>(rows.row_bytes),
                         static_cast<std::size_t>(rows.columns * info(rows.dtype).block_bytes), Making::in_steps),
        rows_(std::move(rows)),
        is_flat_(ballast::is_flat(rows_)) {}

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
  Overflows make(std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::uint64_t count = in.size() / rows_.row_bytes;
    if (count == 0) return {};
    const RowNumbers numbers(rows_, first, count, groups());
    if (is_flat_) return unpack_run(rows_, numbers, first, 0, in, count * rows_.columns, out);
    Overflows overflows;
    const std::size_t row_bytes = out.size() / static_cast<std::size_t>(count);
    for (std::uint64_t row = 0; row < count; ++row) {
      overflows.add(unpack_run(rows_, numbers, first + row, 0, in.subspan(row * rows_.row_bytes), rows_.columns,
                               out.subspan(row * row_bytes, row_bytes)));
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
  bool is_flat_;
  mutable Once groups_are_read_;
  mutable std::vector<std::uint32_t> groups_;
};

bool can_halve(const GroupNumbers& numbers, std::uint64_t columns) {
  if (numbers.group_of || numbers.period != 0) return false;
  if (numbers.columns_each == GroupNumbers::kAll) return true;
  if (numbers.in_line == 1) return numbers.columns_each == columns;
  return numbers.rows_each == 1 && numbers.in_line % 2 == 0 && numbers.in_line * numbers.columns_each == columns;
}

void halve(GroupNumbers& numbers) {
  if (numbers.columns_each == GroupNumbers::kAll) return;
  if (numbers.in_line == 1) {
    numbers.columns_each /= 2;
    numbers.rows_each *= 2;
  } else {
    numbers.in_line /= 2;
  }
}

// A row is read as a whole, so a long one is made several rows where its numbers allow it.
void shorten_rows(PackedRows& rows) {
  constexpr std::uint64_t kLongRow = std::uint64_t{1} << 17;
  const auto can = [&](const std::optional<GroupNumbers>& numbers) {
    return !numbers || can_halve(*numbers, rows.columns);
  };
  while (rows.columns > kLongRow && rows.columns % 16 == 0 && rows.row_bytes * 8 == rows.columns * rows.codes.bits &&
         can_halve(rows.scale, rows.columns) && can(rows.zero) && can(rows.bias)) {
    rows.columns /= 2;
    rows.row_bytes /= 2;
    halve(rows.scale);
    if (rows.zero) halve(*rows.zero);
    if (rows.bias) halve(*rows.bias);
  }
}

}  // namespace

Tensor unpacked_rows(PackedRows rows) {
  const std::uint64_t columns = rows.columns;
  shorten_rows(rows);
  const std::uint64_t count = rows.row_bytes == 0 ? 0 : rows.packed.nbytes() / rows.row_bytes;
  const Shape shape = {count / (rows.columns == 0 ? 1 : columns / rows.columns), columns};
  const DType dtype = rows.dtype;
  const std::uint64_t size = fits(bytes_of(dtype, fits(shape.numel(), "the size of a weight")), "the size of a weight");
  if (size == 0) return Tensor(dtype, shape, nullptr);
  const std::vector<Tensor> sources = sources_of(rows);
  const bool has_data = std::ranges::all_of(sources, [](const Tensor& tensor) { return tensor.has_data(); });
  if (!has_data) return Tensor(dtype, shape, meta_storage(size));
  return Tensor(dtype, shape, std::make_shared<PackedRowsStorage>(std::move(rows)));
}

Overflows unpack_part(const PackedRows& rows, const RowPart& part, std::span<const std::byte> in,
                      std::span<std::byte> out) {
  Overflows overflows;
  const RowNumbers numbers(rows, part);
  const std::size_t in_bytes = in.size() / part.rows, out_bytes = out.size() / part.rows;
  for (std::uint64_t row = 0; row < part.rows; ++row) {
    overflows.add(unpack_run(rows, numbers, part.first_row + row, part.first_column, in.subspan(row * in_bytes),
                             part.columns, out.subspan(row * out_bytes, out_bytes)));
  }
  return overflows;
}

}  // namespace ballast
