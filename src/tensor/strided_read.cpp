#include "tensor/strided_read.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/gather.hpp"
#include "tensor/element_layout.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kMostKeptBytes = std::uint64_t{1} << 30;

// The offset of unit number `n` in row-major order, in bytes from the first unit.
std::int64_t place_of(const ElementLayout& layout, std::uint64_t n) {
  std::int64_t place = 0;
  for (std::size_t i = layout.shape.size(); i-- > 0;) {
    place += static_cast<std::int64_t>(n % layout.shape[i]) * layout.byte_strides[i];
    n /= layout.shape[i];
  }
  return place;
}

// Gathers without a map, row by row of the last dimension. If the units of a row lie close together, the row is read
// whole and taken apart; if they are spread out, they are asked for one by one, in one call.
void gather_by_rows(const Tensor& view, const ElementLayout& layout, std::uint64_t first_unit,
                    std::span<std::byte> out) {
  constexpr std::uint64_t kClose = 64 << 10;
  const std::uint64_t row_units = layout.shape.empty() ? 1 : layout.shape.back();
  const std::int64_t stride = layout.byte_strides.empty() ? 0 : layout.byte_strides.back();
  std::vector<std::byte> row;
  std::vector<Storage::Range> ranges;

  while (!out.empty()) {
    const std::uint64_t units =
        std::min<std::uint64_t>(row_units - first_unit % row_units, out.size() / layout.unit_bytes);
    const auto start =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(view.offset()) + place_of(layout, first_unit));
    const std::uint64_t step = static_cast<std::uint64_t>(stride < 0 ? -stride : stride);
    const std::uint64_t span_bytes = (units - 1) * step + layout.unit_bytes;
    const std::uint64_t low = stride < 0 ? start - (units - 1) * step : start;
    const auto target = out.first(units * layout.unit_bytes);

    if (span_bytes <= std::max(kClose, 8 * static_cast<std::uint64_t>(target.size()))) {
      row.resize(span_bytes);
      view.storage()->read(low, row);
      const std::uint64_t shape[] = {units};
      const std::int64_t strides[] = {stride};
      kernels::gather(target, row.data() + (start - low), shape, strides, 0, layout.unit_bytes);
    } else {
      ranges.clear();
      for (std::uint64_t i = 0; i < units; ++i) {
        const std::uint64_t place = stride < 0 ? start - i * step : start + i * step;
        ranges.push_back({place, target.subspan(i * layout.unit_bytes, layout.unit_bytes)});
      }
      view.storage()->read_many(ranges);
    }
    out = out.subspan(target.size());
    first_unit += units;
  }
}

void gather_units(const Tensor& view, const ElementLayout& layout, std::uint64_t first_unit, std::span<std::byte> out) {
  const std::uint64_t low = view.offset() - layout.low_bytes;
  const bool in_place = view.storage()->visit(low, layout.low_bytes + layout.high_bytes, [&](auto bytes) {
    kernels::gather(out, bytes.data() + layout.low_bytes, layout.shape, layout.byte_strides, first_unit,
                    layout.unit_bytes);
  });
  if (in_place) return;
  // A stream would begin anew for every row if reads jumped in it, so it is read once and kept meanwhile.
  const std::uint64_t size = layout.low_bytes + layout.high_bytes;
  if (view.storage()->is_sequential() && size <= kMostKeptBytes) {
    std::vector<std::byte> all(static_cast<std::size_t>(size));
    view.storage()->read(low, all);
    return kernels::gather(out, all.data() + layout.low_bytes, layout.shape, layout.byte_strides, first_unit,
                           layout.unit_bytes);
  }
  gather_by_rows(view, layout, first_unit, out);
}

}  // namespace

void strided_read(const Tensor& view, std::uint64_t first, std::span<std::byte> out) {
  const ElementLayout layout = element_layout(view.dtype(), view.shape(), view.strides());
  const std::uint64_t unit = layout.unit_bytes;

  // The range may cut a unit at both ends: those two units are gathered in a buffer.
  const auto edge = [&](std::uint64_t n, std::uint64_t skip, std::span<std::byte> part) {
    std::vector<std::byte> whole(unit);
    gather_units(view, layout, n, whole);
    std::memcpy(part.data(), whole.data() + skip, part.size());
  };
  if (const std::uint64_t skip = first % unit; skip != 0 && !out.empty()) {
    const auto part = out.first(std::min<std::uint64_t>(unit - skip, out.size()));
    edge(first / unit, skip, part);
    first += part.size();
    out = out.subspan(part.size());
  }
  const std::uint64_t whole_bytes = out.size() / unit * unit;
  if (whole_bytes != 0) gather_units(view, layout, first / unit, out.first(whole_bytes));
  if (whole_bytes != out.size()) edge((first + whole_bytes) / unit, 0, out.subspan(whole_bytes));
}

void strided_release(const Tensor& view, ByteRange range) {
  const ElementLayout layout = element_layout(view.dtype(), view.shape(), view.strides());
  std::size_t outer = 0;
  while (outer < layout.shape.size() && layout.shape[outer] == 1) ++outer;
  if (outer == layout.shape.size() || layout.unit_count == 0 || layout.low_bytes != 0) return;

  const auto stride = static_cast<std::uint64_t>(layout.byte_strides[outer]);
  const std::uint64_t rows = layout.shape[outer], row_bytes = layout.unit_count / rows * layout.unit_bytes;
  if (stride == 0 || layout.high_bytes != rows * stride) return;

  // A row that the range cuts goes with it: whoever reads the rest maps it again. If a row is longer than the range,
  // it goes with its end, since others are at the same row.
  const std::uint64_t first = range.offset / row_bytes, end = range.offset + range.size;
  const std::uint64_t last = (row_bytes <= range.size ? end + row_bytes - 1 : end) / row_bytes;
  if (first < last) view.storage()->release(view.offset() + first * stride, (last - first) * stride);
}

}  // namespace ballast
