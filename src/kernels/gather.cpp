#include "kernels/gather.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/stream.hpp"
#include "kernels/transpose.hpp"

namespace ballast::kernels {
namespace {

// Dimensions of 1 are dropped, and 64 dimensions of at least 2 have more elements than 64 bits can count.
constexpr std::size_t kMaxRank = 64;

struct Dimension {
  std::uint64_t size;
  std::int64_t stride;  // bytes
};

// The view with as few dimensions as can describe it: at least one, outermost first.
class View {
 public:
  View(std::span<const std::uint64_t> shape, std::span<const std::int64_t> strides) {
    for (std::size_t i = 0; i < shape.size(); ++i) append({shape[i], strides[i]});
    if (rank_ == 0) dims_[rank_++] = {1, 0};
  }

  std::size_t rank() const { return rank_; }
  const Dimension& operator[](std::size_t i) const { return dims_[i]; }
  const Dimension& innermost() const { return dims_[rank_ - 1]; }

  void drop_innermost() { --rank_; }

  // How many elements one step along dimension i passes over.
  std::uint64_t elements_below(std::size_t i) const {
    std::uint64_t count = 1;
    while (++i < rank_) count *= dims_[i].size;
    return count;
  }

 private:
  void append(Dimension inner) {
    if (inner.size == 1) return;
    // One step of the outer dimension is a full pass over the inner one, so the two together are one longer dimension.
    const auto turn = static_cast<std::int64_t>(static_cast<std::uint64_t>(inner.stride) * inner.size);
    if (rank_ > 0 && dims_[rank_ - 1].stride == turn) {
      dims_[rank_ - 1] = {dims_[rank_ - 1].size * inner.size, inner.stride};
    } else {
      dims_[rank_++] = inner;
    }
  }

  std::array<Dimension, kMaxRank> dims_;
  std::size_t rank_ = 0;
};

// An index into dimensions [begin, end) of a view, and the address of its element.
class Position {
 public:
  // Element `number` of the first `end` dimensions.
  Position(const View& view, std::size_t end, const std::byte* base, std::uint64_t number)
      : view_(view), begin_(0), end_(end), at_(base) {
    for (std::size_t i = end; i-- > 0; number /= view[i].size) {
      index_[i] = number % view[i].size;
      at_ += static_cast<std::int64_t>(index_[i]) * view[i].stride;
    }
  }

  // The first element of the dimensions from `begin` to `end`.
  Position(const View& view, std::size_t begin, std::size_t end, const std::byte* base)
      : view_(view), begin_(begin), end_(end), at_(base) {
    for (std::size_t i = begin; i < end; ++i) index_[i] = 0;
  }

  const std::byte* address() const { return at_; }
  std::uint64_t index(std::size_t i) const { return index_[i]; }

  void next() {
    for (std::size_t i = end_; i-- > begin_;) {
      at_ += view_[i].stride;
      if (++index_[i] < view_[i].size) return;
      at_ -= static_cast<std::int64_t>(index_[i]) * view_[i].stride;
      index_[i] = 0;
    }
  }

 private:
  const View& view_;
  std::size_t begin_, end_;
  const std::byte* at_;
  std::array<std::uint64_t, kMaxRank> index_;
};

// Copies bytes that are contiguous both in the source and in the output. Short runs are not streamed: they would leave
// too many lines of the cache half written.
void copy_run(std::byte* out, const std::byte* in, std::size_t size, bool stream) {
  constexpr std::size_t kShort = 256;
  if (stream && size >= kShort) {
    stream_copy(out, in, size);
  } else {
    std::memcpy(out, in, size);
  }
}

template <std::size_t kSize>
void copy_row_of(std::byte* out, const std::byte* in, std::int64_t stride, std::uint64_t count) {
  // Without unrolling, the loop is so short that its speed depends on its alignment.
#pragma GCC unroll 4
  for (; count > 0; --count, out += kSize, in += stride) std::memcpy(out, in, kSize);
}

// Copies `count` elements of `size` bytes that lie `stride` bytes apart.
void copy_row(std::byte* out, const std::byte* in, std::int64_t stride, std::uint64_t count, std::uint64_t size,
              bool stream) {
  if (stride == static_cast<std::int64_t>(size)) return copy_run(out, in, count * size, stream);
  switch (size) {
    case 1: return copy_row_of<1>(out, in, stride, count);
    case 2: return copy_row_of<2>(out, in, stride, count);
    case 4: return copy_row_of<4>(out, in, stride, count);
    case 8: return copy_row_of<8>(out, in, stride, count);
    case 16: return copy_row_of<16>(out, in, stride, count);
    default: break;
  }
  constexpr std::uint64_t kAheadBytes = 8192;
  const std::uint64_t ahead = std::max<std::uint64_t>(1, kAheadBytes / size);
  for (; count > 0; --count, out += size, in += stride) {
    if (count > ahead) prefetch_ahead(in + static_cast<std::int64_t>(ahead) * stride, size);
    copy_run(out, in, size, stream);
  }
}

// One call of gather() in progress: the rest of `out` and the elements that go there.
class Gathering {
 public:
  Gathering(std::span<std::byte> out, const View& view, const std::byte* base, std::uint64_t first, std::uint64_t size)
      : out_(out.data()),
        view_(view),
        base_(base),
        first_(first),
        count_(out.size() / size),
        size_(size),
        stream_(out.size() >= kStreamGatherFromBytes) {}

  void run() {
    if (has_contiguous_rows()) {
      take_by_runs();
    } else {
      take_elements();
    }
    if (stream_) finish_streaming();
  }

 private:
  bool has_contiguous_rows() const {
    return view_.rank() > 1 && view_.innermost().stride == static_cast<std::int64_t>(size_);
  }

  // Whole rows are elements of a view with one dimension less, and this view may be a transpose.
  void take_by_runs() {
    const std::uint64_t row = view_.innermost().size;
    take_rows(std::min(count_, (row - first_ % row) % row));
    const std::uint64_t tail = count_ % row;
    const View elements = view_;
    view_.drop_innermost();
    scale(row);
    take_elements();
    view_ = elements;
    unscale(row, tail);
    take_rows(tail);
  }

  void scale(std::uint64_t row) {
    first_ /= row;
    count_ /= row;
    size_ *= row;
  }

  void unscale(std::uint64_t row, std::uint64_t tail) {
    first_ *= row;
    count_ = tail;
    size_ /= row;
  }

  void take_elements() {
    const std::size_t across = contiguous_dimension();
    if (across == view_.rank()) return take_rows(count_);

    // First rows up to the next whole step of `across`, then all whole steps that are left in this pass over the
    // dimension.
    const std::uint64_t step = view_.elements_below(across);
    while (count_ > 0) {
      take_rows(std::min(count_, (step - first_ % step) % step));
      if (count_ / step < 2) return take_rows(count_);
      take_transposed(across, step);
    }
  }

  // The dimension, other than the innermost, along which elements follow each other in memory; rank() if there is none.
  std::size_t contiguous_dimension() const {
    for (std::size_t i = 0; i + 1 < view_.rank(); ++i) {
      if (view_[i].stride == static_cast<std::int64_t>(size_)) return i;
    }
    return view_.rank();
  }

  // Copies the next `count` elements, row by row along the innermost dimension.
  void take_rows(std::uint64_t count) {
    const Dimension inner = view_.innermost();
    Position row(view_, view_.rank() - 1, base_, first_ / inner.size);
    std::uint64_t column = first_ % inner.size;
    advance(count);
    for (std::byte* to = out_ - count * size_; count > 0; column = 0, row.next()) {
      const std::uint64_t n = std::min(count, inner.size - column);
      copy_row(to, row.address() + static_cast<std::int64_t>(column) * inner.stride, inner.stride, n, size_, stream_);
      to += n * size_;
      count -= n;
    }
  }

  // Copies whole steps of the dimension along which memory is contiguous. Each index of the dimensions between it and
  // the innermost one gives a matrix to transpose.
  void take_transposed(std::size_t across, std::uint64_t step) {
    const Dimension inner = view_.innermost();
    const Position start(view_, across + 1, base_, first_ / step);
    const std::uint64_t steps = std::min(count_ / step, view_[across].size - start.index(across));
    advance(steps * step);
    std::byte* const to = out_ - steps * step * size_;

    // Thin matrices share lines of the cache with their neighbours, so all of them do one band of columns before the
    // next band.
    const bool thin = steps * size_ < 2 * kCacheLine;
    const std::uint64_t band = thin ? std::min<std::uint64_t>(inner.size, kTileColumns) : inner.size;
    for (std::uint64_t column = 0; column < inner.size; column += band) {
      const std::byte* from = start.address() + static_cast<std::int64_t>(column) * inner.stride;
      Position matrix(view_, across + 1, view_.rank() - 1, from);
      for (std::uint64_t m = 0; m < step / inner.size; ++m, matrix.next()) {
        transpose({to + (m * inner.size + column) * size_, step * size_}, {matrix.address(), inner.stride}, steps,
                  std::min(band, inner.size - column), size_, stream_);
      }
    }
  }

  void advance(std::uint64_t count) {
    out_ += count * size_;
    first_ += count;
    count_ -= count;
  }

  std::byte* out_;
  View view_;
  const std::byte* base_;
  std::uint64_t first_, count_, size_;
  bool stream_;
};

}  // namespace

void gather(std::span<std::byte> out, const std::byte* base, std::span<const std::uint64_t> shape,
            std::span<const std::int64_t> byte_strides, std::uint64_t first_element,
            std::uint64_t element_bytes) noexcept {
  if (out.empty()) return;
  Gathering(out, View(shape, byte_strides), base, first_element, element_bytes).run();
}

}  // namespace ballast::kernels
