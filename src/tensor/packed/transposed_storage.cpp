#include "tensor/packed/transposed_storage.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/checked.hpp"
#include "core/overflow_counter.hpp"
#include "kernels/transpose.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

// A strip has so many columns, unless its rows of the result would be more than kStripBytes. Fewer columns are decoded
// in shorter runs, and more do not fit the cache.
constexpr std::uint64_t kStripColumns = 256;
constexpr std::uint64_t kStripBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kPanelRows = 256;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

class TransposedStorage final : public DerivedStorage {
 public:
  explicit TransposedStorage(std::unique_ptr<const StripSource> source)
      : DerivedStorage(source->from, "dequantized from " + source->scheme),
        source_(std::move(source)),
        width_(info(source_->dtype).block_bytes),
        row_bytes_(source_->rows * width_) {
    const std::uint64_t most = std::clamp<std::uint64_t>(kStripBytes / row_bytes_, 1, kStripColumns);
    strip_ = std::max(most / source_->column_unit, std::uint64_t{1}) * source_->column_unit;
    panel_ = round_up(kPanelRows, source_->row_unit);
  }

  std::uint64_t size_bytes() const override { return source_->matrices * source_->columns * row_bytes_; }
  std::uint64_t granule() const override { return strip_ * row_bytes_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    Overflows overflows;
    while (!out.empty()) {
      const Strip strip = strip_at(offset);
      const std::uint64_t skip = offset - strip.offset, size = std::min<std::uint64_t>(strip.bytes - skip, out.size());
      const std::span here = out.first(static_cast<std::size_t>(size));
      if (skip == 0 && size == strip.bytes) {
        overflows.add(make(strip, here));
      } else {
        std::vector<std::byte> whole(static_cast<std::size_t>(strip.bytes));
        const Overflows found = make(strip, whole);
        if (skip == 0) overflows.add(found);  // whoever reads the first byte counts
        std::memcpy(here.data(), whole.data() + skip, here.size());
      }
      offset += size;
      out = out.subspan(here.size());
    }
    count_overflows(overflows);
  }

 private:
  struct Strip {
    std::uint64_t matrix, first_column, columns;
    std::uint64_t offset, bytes;  // in the result
  };

  // The strip that a byte of the result lies in.
  Strip strip_at(std::uint64_t offset) const {
    const std::uint64_t row = offset / row_bytes_;
    Strip strip{row / source_->columns, 0, 0, 0, 0};
    strip.first_column = row % source_->columns / strip_ * strip_;
    strip.columns = std::min(strip_, source_->columns - strip.first_column);
    strip.offset = (strip.matrix * source_->columns + strip.first_column) * row_bytes_;
    strip.bytes = strip.columns * row_bytes_;
    return strip;
  }

  Overflows make(const Strip& strip, std::span<std::byte> out) const {
    Overflows overflows;
    const auto decoder = source_->decoder({strip.matrix, strip.first_column, strip.columns});
    std::vector<std::byte> tile(static_cast<std::size_t>(std::min(panel_, source_->rows) * strip.columns * width_));
    for (std::uint64_t row = 0; row < source_->rows; row += panel_) {
      const std::uint64_t rows = std::min(panel_, source_->rows - row);
      const std::span here = std::span(tile).first(static_cast<std::size_t>(rows * strip.columns * width_));
      overflows.add(decoder->decode(row, rows, here));
      kernels::transpose({out.data() + row * width_, row_bytes_},
                         {here.data(), static_cast<std::int64_t>(strip.columns * width_)}, strip.columns, rows, width_,
                         false);
    }
    return overflows;
  }

  std::unique_ptr<const StripSource> source_;
  std::uint64_t width_, row_bytes_;
  std::uint64_t strip_, panel_;
};

}  // namespace

Tensor transposed_strips(std::unique_ptr<const StripSource> source, bool has_several) {
  const DType dtype = source->dtype;
  const Shape shape =
      has_several ? Shape{source->matrices, source->columns, source->rows} : Shape{source->columns, source->rows};
  const std::uint64_t size = fits(bytes_of(dtype, fits(shape.numel(), "the size of a weight")), "the size of a weight");
  if (size == 0) return Tensor(dtype, shape, nullptr);
  const bool has_data = std::ranges::all_of(source->from, [](const Tensor& tensor) { return tensor.has_data(); });
  if (!has_data) return Tensor(dtype, shape, meta_storage(size));
  return Tensor(dtype, shape, std::make_shared<TransposedStorage>(std::move(source)));
}

}  // namespace ballast
