#include "transform/quantized/fp8_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "kernels/quantize.hpp"
#include "tensor/derived_storage.hpp"
#include "transform/quantized/refusal.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kStepValues = 16384;  // fit into the second-level cache

std::uint64_t blocks_of(std::uint64_t count) { return count / kFp8Block + (count % kFp8Block != 0 ? 1 : 0); }

// What the values of each block are multiplied by: found for a row of blocks when it is first needed, and kept.
class Fp8Factors {
 public:
  explicit Fp8Factors(Tensor values)
      : values_(std::move(values)),
        columns_(values_.shape()[1]),
        wide_(blocks_of(columns_)),
        tall_(blocks_of(values_.shape()[0])) {}

  const Tensor& values() const noexcept { return values_; }
  std::uint64_t memory_bytes() const noexcept { return tall_ * wide_ * sizeof(float); }
  std::uint64_t blocks_in_row() const noexcept { return wide_; }

  // A factor for each block of the row; the span lives as long as this object.
  std::span<const float> of_row(std::uint64_t row) const {
    {
      const std::lock_guard lock(mutex_);
      if (known_.empty()) known_.resize(tall_);
      if (factors_.empty()) factors_.resize(tall_ * wide_);
      if (known_[row]) return span_of(row);
    }
    // A stream that is read from its beginning again for every row would be read as often as there are rows.
    const bool is_stream = values_.storage()->is_sequential();
    for (std::uint64_t i = is_stream ? 0 : row; i < (is_stream ? tall_ : row + 1); ++i) find(i);
    return span_of(row);
  }

  // Calls use(first element, size, number of the block in its row) for the parts of a range of elements, in order; each
  // lies in one block and one row of the matrix.
  template <class Use>
  void for_each_part(std::uint64_t first, std::uint64_t count, const Use& use) const {
    while (count != 0) {
      const std::uint64_t column = first % columns_;
      const std::uint64_t size = std::min({kFp8Block - column % kFp8Block, columns_ - column, count});
      use(first, size, column / kFp8Block);
      first += size;
      count -= size;
    }
  }

  // Finds the factors of a row that nobody else needs the values of now.
  void release_row(std::uint64_t row) const {
    (void)of_row(row);
    const std::uint64_t first = row * kFp8Block * columns_;
    const std::uint64_t end = std::min(first + kFp8Block * columns_, values_.numel());
    values_.release({first * sizeof(float), (end - first) * sizeof(float)});
  }

  std::uint64_t block_row_of(std::uint64_t element) const { return element / columns_ / kFp8Block; }

 private:
  std::span<const float> span_of(std::uint64_t row) const { return std::span(factors_).subspan(row * wide_, wide_); }

  void find(std::uint64_t row) const {
    const std::uint64_t first = row * kFp8Block * columns_;
    const std::uint64_t end = std::min((row + 1) * kFp8Block * columns_, values_.numel());
    std::vector<float> most(wide_), some(std::min(kStepValues, end - first));
    for (std::uint64_t begin = first; begin < end; begin += some.size()) {
      const auto values = std::span(some).first(std::min<std::uint64_t>(some.size(), end - begin));
      values_.read(begin * sizeof(float), std::as_writable_bytes(values));
      for_each_part(begin, values.size(), [&](std::uint64_t element, std::uint64_t size, std::uint64_t block) {
        const auto part = values.subspan(element - begin, size);
        const float largest = kernels::largest_magnitude(part);
        if (!std::isfinite(largest)) refuse_first_not_finite(values_, element, part, "FP8");
        most[block] = std::max(most[block], largest);
      });
    }
    std::ranges::transform(most, most.begin(), kernels::fp8_factor);
    const std::lock_guard lock(mutex_);
    if (known_[row]) return;
    std::ranges::copy(most, factors_.begin() + static_cast<std::ptrdiff_t>(row * wide_));
    known_[row] = true;
  }

  Tensor values_;
  std::uint64_t columns_, wide_, tall_;  // wide and tall count blocks
  mutable std::mutex mutex_;
  mutable std::vector<float> factors_;
  mutable std::vector<bool> known_;
};

using Fp8FactorsPtr = std::shared_ptr<const Fp8Factors>;

class Fp8CodeStorage final : public DerivedStorage {
 public:
  explicit Fp8CodeStorage(Fp8FactorsPtr factors)
      : DerivedStorage({factors->values()}, "quantize to FP8 in blocks of 128 x 128"), factors_(std::move(factors)) {}

  std::uint64_t size_bytes() const override { return factors_->values().numel(); }

  std::uint64_t granule() const override {
    const Tensor& values = factors_->values();
    return values.is_contiguous() ? std::max<std::uint64_t>(values.storage()->granule() / sizeof(float), 1) : 1;
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<float> some(std::min<std::uint64_t>(kStepValues, out.size()));
    std::vector<std::span<const float>> factors;
    for (; !out.empty(); offset += some.size(), out = out.subspan(std::min(some.size(), out.size()))) {
      const auto values = std::span(some).first(std::min(some.size(), out.size()));
      const std::uint64_t first_row = factors_->block_row_of(offset);
      factors.clear();  // found before the values are read, so that a stream is not read back and forth
      for (std::uint64_t row = first_row; row <= factors_->block_row_of(offset + values.size() - 1); ++row)
        factors.push_back(factors_->of_row(row));
      factors_->values().read(offset * sizeof(float), std::as_writable_bytes(values));
      factors_->for_each_part(
          offset, values.size(), [&](std::uint64_t element, std::uint64_t size, std::uint64_t block) {
            const float factor = factors[factors_->block_row_of(element) - first_row][block];
            kernels::to_fp8(values.subspan(element - offset, size), factor, out.subspan(element - offset, size));
          });
    }
  }

  void prefetch(std::span<const ByteRange> ranges) const override {
    std::vector<ByteRange> wanted;
    wanted.reserve(ranges.size());
    for (const ByteRange& range : ranges) wanted.push_back({range.offset * sizeof(float), range.size * sizeof(float)});
    factors_->values().prefetch(wanted);
  }

  void release(std::uint64_t offset, std::uint64_t size) const override {
    factors_->values().release({offset * sizeof(float), size * sizeof(float)});
  }

 private:
  Fp8FactorsPtr factors_;
};

class Fp8ScaleStorage final : public DerivedStorage {
 public:
  explicit Fp8ScaleStorage(Fp8FactorsPtr factors)
      : DerivedStorage({factors->values()}, "scales of FP8 in blocks of 128 x 128"), factors_(std::move(factors)) {}

  std::uint64_t size_bytes() const override { return factors_->memory_bytes(); }
  std::uint64_t memory_bytes() const override { return factors_->memory_bytes(); }
  std::uint64_t granule() const override { return factors_->blocks_in_row() * sizeof(float); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t wide = factors_->blocks_in_row();
    std::uint64_t row = UINT64_MAX;
    while (!out.empty()) {
      const std::uint64_t number = offset / sizeof(float), skip = offset % sizeof(float);
      if (number / wide != row) factors_->release_row(row = number / wide);
      const float scale = 1 / factors_->of_row(number / wide)[number % wide];
      const std::size_t size = std::min<std::size_t>(sizeof scale - skip, out.size());
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&scale) + skip, size);
      offset += size;
      out = out.subspan(size);
    }
  }

 private:
  Fp8FactorsPtr factors_;
};

}  // namespace

Fp8Blocks fp8_blocks(const Tensor& matrix) {
  const auto factors = std::make_shared<const Fp8Factors>(matrix.to(DType::f32));
  const Shape blocks({blocks_of(matrix.shape()[0]), blocks_of(matrix.shape()[1])});
  return {Tensor(DType::f8_e4m3, matrix.shape(), std::make_shared<Fp8CodeStorage>(factors)),
          Tensor(DType::f32, blocks, std::make_shared<Fp8ScaleStorage>(factors))};
}

}  // namespace ballast
