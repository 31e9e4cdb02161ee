#include "peft/merge/merged_storage.hpp"

#include <ballast/error.hpp>
#include <ballast/merge.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/once.hpp"
#include "core/overflow_counter.hpp"
#include "kernels/cast.hpp"
#include "tensor/ancestors.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast::peft {
namespace {

// A panel has rows enough to make a product fast, and few enough for the second-level cache.
constexpr std::uint64_t kPanelValues = std::uint64_t{64} << 10;

// The base first, then what is merged into it.
std::vector<Tensor> tensors_of(const Tensor& base, const std::vector<EditPtr>& edits) {
  std::vector<Tensor> tensors{base};
  for (const EditPtr& edit : edits) tensors.insert(tensors.end(), edit->parts().begin(), edit->parts().end());
  return tensors;
}

std::string step_of(const std::vector<EditPtr>& edits, bool round_between) {
  std::string step;
  for (const EditPtr& edit : edits) step += (step.empty() ? "merge " : ", then ") + edit->step();
  return round_between ? step + ", rounded as PEFT does" : step;
}

class MergedStorage final : public DerivedStorage {
 public:
  MergedStorage(Tensor base, std::vector<EditPtr> edits, bool round_between)
      : DerivedStorage(tensors_of(base, edits), step_of(edits, round_between)),
        base_(from().front()),
        edits_(std::move(edits)),
        round_between_(round_between),
        extent_(edits_.front()->extent()),
        element_bytes_(info(base_.dtype()).block_bytes),
        row_bytes_(extent_.columns * element_bytes_),
        size_(base_.nbytes()) {
    for (const EditPtr& edit : edits_) together_ = std::min(std::lcm(together_, edit->rows_together()), extent_.rows);
    const std::uint64_t rows = std::max<std::uint64_t>(kPanelValues / extent_.columns, 1);
    step_ = std::min(std::max(rows / together_, std::uint64_t{1}) * together_, extent_.rows);
  }

  std::uint64_t size_bytes() const override { return size_; }
  std::uint64_t granule() const override { return holds_all() ? element_bytes_ : step_ * row_bytes_; }
  bool is_sequential() const override { return base_.storage()->is_sequential(); }

  std::uint64_t memory_bytes() const override {
    std::uint64_t total = holds_all() ? size_ : 0;
    for (const EditPtr& edit : edits_) total += edit->memory_bytes();
    return total;
  }

  void release(std::uint64_t offset, std::uint64_t size) const override { base_.release({offset, size}); }
  void prefetch(std::span<const ByteRange> ranges) const override { base_.prefetch(ranges); }

  void prepare(const Progress& progress) const override {
    once_.run([&] {
      base_.storage()->prepare(progress);
      for (std::size_t i = 0; i < edits_.size(); ++i) {
        edits_[i]->prepare([&, i](std::uint64_t first, std::uint64_t count, std::span<float> out) {
          std::vector<float> scratch(out.size());
          read_rows({first, count, extent_.columns, out}, scratch, i);
        });
      }
    });
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    prepare({});
    if (holds_all()) return read_held(offset, out);
    // The last bits of a product depend on how many rows it has. So panels are the same whoever asks for which bytes:
    // the result does not depend on how a tensor is cut among buffers, threads and processes.
    const std::uint64_t first = offset / row_bytes_ / step_ * step_;
    const std::uint64_t end = (offset + out.size() + row_bytes_ - 1) / row_bytes_;
    Buffers buffers;
    for (std::uint64_t row = first; row < end; row += step_)
      read_panel(row, std::min(step_, extent_.rows - row), offset, out, buffers);
  }

 private:
  struct Buffers {
    std::vector<float> values, scratch;
    std::vector<std::byte> edge;
  };

  // Whether any row needs all rows, and those are many.
  bool holds_all() const { return together_ == extent_.rows && together_ * extent_.columns > kPanelValues; }

  // Makes rows into `out`, which begins at byte `offset`. If `out` cuts the rows, they are made beside it first.
  void read_panel(std::uint64_t row, std::uint64_t count, std::uint64_t offset, std::span<std::byte> out,
                  Buffers& buffers) const {
    const std::uint64_t begin = row * row_bytes_, size = count * row_bytes_;
    if (begin >= offset && begin + size <= offset + out.size())
      return count_overflows(make(row, count, out.subspan(begin - offset, size), buffers));
    buffers.edge.resize(size);
    const Overflows overflows = make(row, count, buffers.edge, buffers);
    const std::uint64_t from = std::max(begin, offset), to = std::min(begin + size, offset + out.size());
    if (from >= to) return;
    std::memcpy(out.data() + (from - offset), buffers.edge.data() + (from - begin), to - from);
    if (overflows.count == 0 || base_.dtype() == DType::f64) return count_overflows(overflows);
    // Other calls make the same rows for the other bytes, and count the overflows of those.
    const auto first = (from - begin + element_bytes_ - 1) / element_bytes_;
    const auto end = (to - begin + element_bytes_ - 1) / element_bytes_;
    const auto values = std::span<const float>(buffers.values).subspan(first, end - first);
    count_overflows(kernels::find_overflows(DType::f32, base_.dtype(), std::as_bytes(values)));
  }

  Overflows make(std::uint64_t row, std::uint64_t count, std::span<std::byte> out, Buffers& buffers) const {
    const std::size_t size = count * extent_.columns;
    buffers.scratch.resize(size);
    // F32 is made in `out` itself, and cannot overflow.
    if (base_.dtype() == DType::f32 && reinterpret_cast<std::uintptr_t>(out.data()) % alignof(float) == 0) {
      const std::span<float> values(reinterpret_cast<float*>(out.data()), size);
      read_rows({row, count, extent_.columns, values}, buffers.scratch, edits_.size());
      return {};
    }
    buffers.values.resize(size);
    const Panel panel{row, count, extent_.columns, buffers.values};
    if (base_.dtype() == DType::f64) return make_doubles(panel, out, buffers.scratch);
    read_rows(panel, buffers.scratch, edits_.size());
    return kernels::cast(DType::f32, base_.dtype(), std::as_bytes(panel.values), out);
  }

  // The change is computed in floats; the weight that it is added to keeps all its digits.
  Overflows make_doubles(const Panel& panel, std::span<std::byte> out, std::span<float> scratch) const {
    std::vector<double> wide(panel.values.size());
    base_.read(panel.first * row_bytes_, std::as_writable_bytes(std::span(wide)));
    const std::vector<float> before(wide.begin(), wide.end());
    std::ranges::copy(before, panel.values.begin());
    for (const EditPtr& edit : edits_) edit->apply(panel, scratch);
    Overflows overflows;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const double merged = wide[i] + (static_cast<double>(panel.values[i]) - static_cast<double>(before[i]));
      if (std::isfinite(wide[i]) && !std::isfinite(merged)) overflows.add({1, wide[i], DType::f64});
      wide[i] = merged;
    }
    std::memcpy(out.data(), wide.data(), out.size());
    return overflows;
  }

  // The rows as the first `edit_count` edits leave them.
  void read_rows(const Panel& panel, std::span<float> scratch, std::size_t edit_count) const {
    read_base(panel);
    for (std::size_t i = 0; i < edit_count; ++i) {
      if (i != 0 && round_between_) round_through(base_.dtype(), panel.values);
      edits_[i]->apply(panel, scratch);
    }
    if (round_between_ && edit_count != 0 && edit_count < edits_.size()) round_through(base_.dtype(), panel.values);
  }

  void read_base(const Panel& panel) const {
    const auto out = std::as_writable_bytes(panel.values);
    const std::uint64_t begin = panel.first * row_bytes_, size = panel.count * row_bytes_;
    if (base_.is_contiguous()) {
      const bool in_place = base_.storage()->visit(base_.offset() + begin, size, [&](std::span<const std::byte> bytes) {
        kernels::cast(base_.dtype(), DType::f32, bytes, out);
      });
      if (in_place) return;
    }
    std::vector<std::byte> bytes(size);
    base_.read(begin, bytes);
    kernels::cast(base_.dtype(), DType::f32, bytes, out);
  }

  // The whole weight is made when the first byte is asked for, and forgotten when all bytes were given.
  void read_held(std::uint64_t offset, std::span<std::byte> out) const {
    const std::lock_guard lock(mutex_);
    if (held_.empty()) {
      held_.resize(size_);
      Buffers buffers;
      count_overflows(make(0, extent_.rows, held_, buffers));
    }
    std::memcpy(out.data(), held_.data() + offset, out.size());
    given_ += out.size();
    if (given_ < size_) return;
    held_ = {};
    given_ = 0;
  }

  const Tensor& base_;
  std::vector<EditPtr> edits_;
  bool round_between_;
  Extent extent_;
  std::uint64_t element_bytes_, row_bytes_, size_;
  std::uint64_t together_ = 1, step_ = 1;  // rows
  mutable Once once_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::byte> held_;
  mutable std::uint64_t given_ = 0;
};

bool is_made_of_bytes(DType dtype) {
  return info(dtype).block_elements == 1 && kernels::can_cast(dtype, DType::f32) &&
         kernels::can_cast(DType::f32, dtype);
}

}  // namespace

Tensor merged_tensor(const Tensor& base, std::vector<EditPtr> edits, bool round_between) {
  if (base.numel() == 0 || edits.empty()) return base;
  if (is_made_of_bytes(base.dtype())) {
    auto storage = std::make_shared<MergedStorage>(base, std::move(edits), round_between);
    return Tensor(base.dtype(), base.shape(), std::move(storage));
  }
  const Tensor values = base.to(DType::f32);
  return Tensor(DType::f32, base.shape(), std::make_shared<MergedStorage>(values, std::move(edits), round_between))
      .to(base.dtype());
}

}  // namespace ballast::peft

namespace ballast {

std::uint64_t merge_memory_bytes(const Tensor& tensor) {
  std::set<const Storage*> counted;
  return kept_memory_bytes(tensor, counted);
}

}  // namespace ballast
