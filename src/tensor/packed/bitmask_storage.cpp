#include "tensor/packed/bitmask_storage.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "core/scratch.hpp"
#include "core/text.hpp"
#include "kernels/packed/scatter.hpp"
#include "tensor/derived_storage.hpp"
#include "tensor/packed/weight_error.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kStepBytes = 256 << 10;  // of the mask, or of the result

class BitmaskStorage final : public DerivedStorage {
 public:
  BitmaskStorage(std::vector<Tensor> from, const Shape& shape, std::string weight)
      : DerivedStorage(std::move(from), "scattered by a bit mask"),
        weight_(std::move(weight)),
        rows_(shape[0]),
        columns_(shape[1]),
        width_(info(values().dtype()).block_bytes),
        row_bytes_(columns_ * width_),
        mask_bytes_(mask().shape()[1]) {}

  std::uint64_t size_bytes() const override { return rows_ * row_bytes_; }
  std::uint64_t granule() const override {
    return std::clamp<std::uint64_t>(kStepBytes / row_bytes_, 1, rows_) * row_bytes_;
  }

  void prepare(const Progress& progress) const override {
    DerivedStorage::prepare(progress);
    counted_.run([&] { count(); });
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    counted_.run([&] { count(); });
    const std::uint64_t step = std::max<std::uint64_t>(kStepBytes / row_bytes_, 1);
    while (!out.empty()) {
      const std::uint64_t row = offset / row_bytes_, skip = offset % row_bytes_;
      const std::uint64_t rows = std::min({step, rows_ - row, (skip + out.size() + row_bytes_ - 1) / row_bytes_});
      const std::uint64_t size = std::min<std::uint64_t>(rows * row_bytes_ - skip, out.size());
      const std::span here = out.first(static_cast<std::size_t>(size));
      if (skip == 0 && size == rows * row_bytes_) {
        make(row, rows, here);
      } else {
        const Scratch whole(static_cast<std::size_t>(rows * row_bytes_));
        make(row, rows, whole.bytes());
        std::memcpy(here.data(), whole.bytes().data() + skip, here.size());
      }
      offset += size;
      out = out.subspan(here.size());
    }
  }

 private:
  const Tensor& values() const { return from()[0]; }
  const Tensor& mask() const { return from()[1]; }

  // Finds where the values of each row begin.
  void count() const {
    std::vector<std::uint64_t> begins(static_cast<std::size_t>(rows_ + 1));
    const std::uint64_t step = std::max<std::uint64_t>(kStepBytes / mask_bytes_, 1);
    const unsigned unused = static_cast<unsigned>(mask_bytes_ * 8 - columns_);
    std::vector<std::byte> bytes;
    for (std::uint64_t row = 0; row < rows_; row += step) {
      const std::uint64_t rows = std::min(step, rows_ - row);
      bytes.resize(static_cast<std::size_t>(rows * mask_bytes_));
      mask().read(row * mask_bytes_, bytes);
      for (std::uint64_t i = 0; i < rows; ++i) {
        const std::span line = std::span(bytes).subspan(i * mask_bytes_, mask_bytes_);
        if ((std::to_integer<unsigned>(line.back()) >> (8 - unused)) != 0)
          complain(fmt::format("has a bit behind the last column of row {}", row + i));
        begins[row + i + 1] = begins[row + i] + kernels::count_bits(line);
      }
    }
    if (begins.back() != values().numel())
      complain(fmt::format("has {} values for {} bits", values().numel(), begins.back()));
    if (from().size() > 2) check_offsets(begins);
    begins_ = std::move(begins);
  }

  void check_offsets(const std::vector<std::uint64_t>& begins) const {
    const std::vector<std::int64_t> offsets = from()[2].values<std::int64_t>();
    for (std::size_t row = 0; row < offsets.size(); ++row)
      if (static_cast<std::uint64_t>(offsets[row]) != begins[row])
        complain(fmt::format("has the values of row {} from {} on by its offsets, and from {} by its bits", row,
                             offsets[row], begins[row]));
  }

  void make(std::uint64_t row, std::uint64_t rows, std::span<std::byte> out) const {
    const std::uint64_t first = begins_[row], count = begins_[row + rows] - first;
    // The kernel may load a whole vector where the last value is.
    const auto values_bytes = static_cast<std::size_t>(count * width_);
    const Scratch packed(values_bytes + kernels::kScatterSlack),
        mask_of_rows(static_cast<std::size_t>(rows * mask_bytes_));
    values().read(first * width_, packed.bytes().first(values_bytes));
    mask().read(row * mask_bytes_, mask_of_rows.bytes());
    for (std::uint64_t i = 0; i < rows; ++i) {
      kernels::scatter(mask_of_rows.bytes().subspan(i * mask_bytes_, mask_bytes_),
                       packed.bytes().data() + (begins_[row + i] - first) * width_, width_,
                       out.subspan(i * row_bytes_, row_bytes_));
    }
  }

  [[noreturn]] void complain(const std::string& what) const { throw weight_error(weight_, what, mask()); }

  std::string weight_;
  std::uint64_t rows_, columns_;
  std::size_t width_;
  std::uint64_t row_bytes_, mask_bytes_;
  mutable Once counted_;
  mutable std::vector<std::uint64_t> begins_;  // of the values of each row, and the end of all
};

}  // namespace

Tensor scattered(const Tensor& values, const Tensor& mask, const Shape& shape, const std::string& weight,
                 const std::optional<Tensor>& offsets) {
  // The rows are counted in memory, so that rows of a few bits would be a bomb.
  constexpr std::uint64_t kManyRows = std::uint64_t{1} << 22, kFewBytes = 8;
  if (shape[0] > kManyRows && mask.shape()[1] < kFewBytes)
    throw Error(Errc::limit, fmt::format("the quantized weight {} has {} rows of {} bytes in its bit mask",
                                         quote(weight), shape[0], mask.shape()[1]));
  const std::uint64_t size =
      fits(bytes_of(values.dtype(), fits(shape.numel(), "the size of a weight")), "the size of a weight");
  if (!values.has_data() || !mask.has_data()) return Tensor(values.dtype(), shape, meta_storage(size));
  std::vector<Tensor> from = {values, mask};
  if (offsets && offsets->has_data()) from.push_back(*offsets);
  return Tensor(values.dtype(), shape, std::make_shared<BitmaskStorage>(std::move(from), shape, weight));
}

}  // namespace ballast
