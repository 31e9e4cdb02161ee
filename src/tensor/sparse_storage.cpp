#include "tensor/sparse_storage.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "core/once.hpp"
#include "core/overflow_counter.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "kernels/add.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

// The parts of PyTorch's sparse layouts:
//   COO   indices [S, n], values [n, dense…]                                        of a shape [S sizes…, dense…]
//   CSR   crow_indices [batch…, rows + 1], col_indices [batch…, n], values [batch…, n, dense…]
//   CSC   the same with columns and rows exchanged
//   BSR, BSC   the same, counted in blocks: values [batch…, n, block rows, block columns, dense…]
//                                                                        of a shape [batch…, rows, columns, dense…]
struct Layout {
  std::string_view name;
  bool is_compressed, is_by_column, is_blocked;
};
constexpr std::array kLayouts = {
    Layout{"sparse_coo", false, false, false}, Layout{"sparse_csr", true, false, false},
    Layout{"sparse_csc", true, true, false},   Layout{"sparse_bsr", true, false, true},
    Layout{"sparse_bsc", true, true, true},
};

const Layout* find_layout(std::string_view name) noexcept {
  const auto found =
      std::find_if(kLayouts.begin(), kLayouts.end(), [&](const Layout& layout) { return layout.name == name; });
  return found == kLayouts.end() ? nullptr : &*found;
}

// Where a block goes. Blocks are numbered row by row, and the blocks of one batch follow those of the batch before. If
// a block is one row high, only its number matters: then all blocks count as one row.
struct Grid {
  std::uint64_t block_rows = 1;
  std::uint64_t blocks_across = 0;  // blocks in a row
  std::uint64_t segment_bytes = 0;  // bytes of one row of a block
  std::uint64_t row_bytes = 0;

  std::uint64_t block_bytes() const noexcept { return block_rows * segment_bytes; }
};

struct Sparse {
  std::string name;
  const Layout* layout = nullptr;
  Shape shape;
  Tensor compressed;  // empty in COO
  Tensor plain;       // indices, col_indices, row_indices
  Tensor values;
  Grid grid;
  std::uint64_t batches = 1, rows = 0, columns = 0;  // counted in blocks; for compressed layouts
};

[[noreturn]] void complain(const std::string& name, const std::string& what) {
  throw Error(Errc::malformed, fmt::format("the sparse tensor {} {}", quote(name), what));
}

// The integers of an index tensor, one after the other.
class Indices {
 public:
  explicit Indices(const Tensor& tensor) : tensor_(tensor), width_(info(tensor.dtype()).block_bytes) {}

  std::int64_t next() {
    if (at_ == buffer_.size()) refill();
    std::int64_t value = 0;
    if (width_ == 4) {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, buffer_.data() + at_, sizeof narrow);
      value = narrow;
    } else {
      std::memcpy(&value, buffer_.data() + at_, sizeof value);
    }
    at_ += width_;
    return value;
  }

 private:
  void refill() {
    constexpr std::uint64_t kStepBytes = 64 << 10;
    buffer_.resize(static_cast<std::size_t>(std::min(kStepBytes, tensor_.nbytes() - read_)));
    tensor_.read(read_, buffer_);
    read_ += buffer_.size();
    at_ = 0;
  }

  const Tensor& tensor_;
  std::size_t width_, at_ = 0;
  std::uint64_t read_ = 0;
  std::vector<std::byte> buffer_;
};

// The numbers of the blocks that are not zero, in ascending order, and which values each block has.
class SparseEntries {
 public:
  explicit SparseEntries(const Sparse& sparse) {
    if (sparse.layout->is_compressed)
      read_compressed(sparse);
    else
      read_coordinates(sparse);
    sort();
  }

  std::size_t first_from(std::uint64_t block) const {
    return static_cast<std::size_t>(std::lower_bound(blocks_.begin(), blocks_.end(), block) - blocks_.begin());
  }
  std::size_t size() const noexcept { return blocks_.size(); }
  std::uint64_t block(std::size_t i) const noexcept { return blocks_[i]; }
  std::uint64_t number(std::size_t i) const noexcept { return order_.empty() ? i : order_[i]; }
  bool in_file_order() const noexcept { return order_.empty(); }

 private:
  // Reads dimension by dimension, as the file has them: a block's number is that of its row, times the columns, plus ….
  void read_coordinates(const Sparse& sparse) {
    blocks_.resize(static_cast<std::size_t>(sparse.plain.shape()[1]));
    Indices indices(sparse.plain);
    for (std::size_t d = 0; d < sparse.plain.shape()[0]; ++d) {
      const std::uint64_t size = sparse.shape[d];
      for (std::uint64_t& block : blocks_) block = block * size + checked(sparse, indices.next(), size);
    }
  }

  void read_compressed(const Sparse& sparse) {
    const bool by_column = sparse.layout->is_by_column;
    const std::uint64_t lines = by_column ? sparse.columns : sparse.rows;
    const std::uint64_t across = by_column ? sparse.rows : sparse.columns;
    const std::uint64_t count = sparse.plain.shape()[sparse.plain.rank() - 1];
    blocks_.reserve(static_cast<std::size_t>(sparse.plain.numel()));
    Indices ends(sparse.compressed), indices(sparse.plain);
    for (std::uint64_t batch = 0; batch < sparse.batches; ++batch) {
      const std::uint64_t first = batch * sparse.rows * sparse.columns;
      std::int64_t begin = ends.next();
      if (begin != 0) complain(sparse.name, "has compressed indices that do not begin with 0");
      for (std::uint64_t line = 0; line < lines; ++line) {
        const std::int64_t end = ends.next();
        if (end < begin || static_cast<std::uint64_t>(end) > count)
          complain(sparse.name, fmt::format("has compressed indices that go from {} to {} of {}", begin, end, count));
        for (; begin < end; ++begin) {
          const std::uint64_t index = checked(sparse, indices.next(), across);
          blocks_.push_back(first + (by_column ? index * sparse.columns + line : line * sparse.columns + index));
        }
      }
      if (static_cast<std::uint64_t>(begin) != count)
        complain(sparse.name, fmt::format("has compressed indices that end with {} of {}", begin, count));
    }
  }

  static std::uint64_t checked(const Sparse& sparse, std::int64_t index, std::uint64_t size) {
    if (index < 0 || static_cast<std::uint64_t>(index) >= size)
      complain(sparse.name, fmt::format("has the index {} where there are {}", index, size));
    return static_cast<std::uint64_t>(index);
  }

  // A stable sort: values with the same indices are added up in the order of the file.
  void sort() {
    if (std::is_sorted(blocks_.begin(), blocks_.end())) return;
    order_.resize(blocks_.size());
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return blocks_[a] < blocks_[b]; });
    std::sort(blocks_.begin(), blocks_.end());
  }

  std::vector<std::uint64_t> blocks_, order_;  // order_ is empty if the order is that of the file
};

// Reads values that do not lie in memory through a buffer. The values of the next entries often follow, so it reads
// ahead.
class ValueBuffer {
 public:
  ValueBuffer(const Tensor& values, std::uint64_t ahead_bytes)
      : values_(values), size_(values.nbytes()), ahead_bytes_(ahead_bytes) {}

  std::span<const std::byte> operator()(std::uint64_t offset, std::uint64_t size) {
    if (offset < begin_ || offset + size > begin_ + buffer_.size()) {
      buffer_.resize(static_cast<std::size_t>(std::min(std::max(size, ahead_bytes_), size_ - offset)));
      values_.read(offset, buffer_);
      begin_ = offset;
    }
    return std::span(buffer_).subspan(static_cast<std::size_t>(offset - begin_), static_cast<std::size_t>(size));
  }

 private:
  const Tensor& values_;
  std::uint64_t size_, ahead_bytes_, begin_ = 0;
  std::vector<std::byte> buffer_;
};

constexpr std::uint64_t kMostBufferedBytes = 64 << 10;  // the most bytes of values in a buffer

class SparseStorage final : public DerivedStorage {
 public:
  SparseStorage(Sparse sparse, std::uint64_t size_bytes)
      : DerivedStorage({sparse.compressed, sparse.plain, sparse.values}, "dense from sparse"),
        sparse_(std::move(sparse)),
        size_(size_bytes),
        element_bytes_(info(sparse_.values.dtype()).block_bytes) {}

  std::uint64_t size_bytes() const override { return size_; }
  std::uint64_t granule() const override { return element_bytes_; }
  bool is_sequential() const override { return false; }  // prepare() has read the parts that are sequential

  void prepare(const Progress& progress) const override {
    once_.run([&] {
      DerivedStorage::prepare(progress);
      entries_ = std::make_unique<const SparseEntries>(sparse_);
      // Reading values jumps back and forth, which a compressed stream cannot do.
      const StoragePtr& storage = sparse_.values.storage();
      values_ = storage && storage->is_sequential() ? sparse_.values.realize(1) : sparse_.values;
    });
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    prepare({});
    const std::uint64_t skip = offset % element_bytes_, rest = (skip + out.size()) % element_bytes_;
    if (skip == 0 && rest == 0) return read_elements(offset, out);
    // The range may cut elements at both ends: then whole elements are made in a buffer.
    std::vector<std::byte> whole(skip + out.size() + (rest == 0 ? 0 : element_bytes_ - rest));
    read_elements(offset - skip, whole);
    std::memcpy(out.data(), whole.data() + skip, out.size());
  }

 private:
  void read_elements(std::uint64_t offset, std::span<std::byte> out) const {
    const auto fill = [&](auto&& values_at) {
      std::memset(out.data(), 0, out.size());
      const std::uint64_t row_bytes = sparse_.grid.row_bytes;
      for (std::uint64_t done = 0; done < out.size();) {
        const std::uint64_t row = (offset + done) / row_bytes, first = (offset + done) % row_bytes;
        const std::uint64_t size = std::min(row_bytes - first, out.size() - done);
        add_row(row, first, out.subspan(done, size), values_at);
        done += size;
      }
    };
    if (values_.is_contiguous() && values_.nbytes() != 0) {
      const bool in_place = values_.storage()->visit(values_.offset(), values_.nbytes(), [&](auto bytes) {
        fill([bytes](std::uint64_t at, std::uint64_t size) { return bytes.subspan(at, size); });
      });
      if (in_place) return;
    }
    fill(ValueBuffer(values_, entries_->in_file_order() ? kMostBufferedBytes : 0));
  }

  // Adds the entries of one row, from its byte `first` on.
  template <class ValuesAt>
  void add_row(std::uint64_t row, std::uint64_t first, std::span<std::byte> out, ValuesAt& values_at) const {
    const Grid& grid = sparse_.grid;
    const std::uint64_t row_block = row / grid.block_rows * grid.blocks_across, end = first + out.size();
    const std::uint64_t last_block = row_block + (end - 1) / grid.segment_bytes;
    for (std::size_t i = entries_->first_from(row_block + first / grid.segment_bytes);
         i < entries_->size() && entries_->block(i) <= last_block; ++i) {
      const std::uint64_t segment =
          (entries_->block(i) - row_block) * grid.segment_bytes;  // where it begins in the row
      const std::uint64_t values =
          entries_->number(i) * grid.block_bytes() + row % grid.block_rows * grid.segment_bytes;
      const std::uint64_t to = std::min(end, segment + grid.segment_bytes);
      for (std::uint64_t from = std::max(first, segment), size = 0; from < to; from += size) {
        size = std::min(to - from, kMostBufferedBytes);
        count_overflows(
            kernels::add(values_.dtype(), out.subspan(from - first, size), values_at(values + from - segment, size)));
      }
    }
  }

  Sparse sparse_;
  std::uint64_t size_, element_bytes_;
  mutable Once once_;
  mutable std::unique_ptr<const SparseEntries> entries_;  // set by prepare()
  mutable Tensor values_;                                 // set by prepare()
};

std::uint64_t product(std::span<const std::uint64_t> dims) {
  return fits(Shape(dims).numel(), "the size of a sparse tensor");
}

void require_integers(const std::string& name, const Tensor& indices) {
  if (indices.dtype() != DType::i64 && indices.dtype() != DType::i32)
    complain(name, fmt::format("has indices of dtype {}", ballast::name(indices.dtype())));
}

// The dense dimensions are those that the values have beyond `values_rank`; they must be the shape's last ones.
std::span<const std::uint64_t> dense_dims(const Sparse& sparse, std::size_t values_rank, std::size_t shape_rank) {
  const auto of_values = sparse.values.shape().dims(), of_shape = sparse.shape.dims();
  const bool fit = of_values.size() >= values_rank && of_shape.size() >= shape_rank &&
                   std::ranges::equal(of_values.subspan(values_rank), of_shape.subspan(shape_rank));
  if (!fit)
    complain(sparse.name, fmt::format("of shape {} cannot have values of shape {}", to_string(sparse.shape),
                                      to_string(sparse.values.shape())));
  return of_shape.subspan(shape_rank);
}

void lay_out_coordinates(Sparse& sparse) {
  const Shape& indices = sparse.plain.shape();
  if (indices.rank() != 2 || sparse.values.rank() == 0 || sparse.values.shape()[0] != indices[1])
    complain(sparse.name, fmt::format("has indices of shape {} for values of shape {}", to_string(indices),
                                      to_string(sparse.values.shape())));
  if (indices[0] > sparse.shape.rank())
    complain(sparse.name, fmt::format("of {} dimensions has indices into {}", sparse.shape.rank(), indices[0]));
  const auto dense = dense_dims(sparse, 1, static_cast<std::size_t>(indices[0]));
  sparse.grid.segment_bytes = product(dense);
}

void lay_out_compressed(Sparse& sparse) {
  const std::size_t batch_rank = sparse.compressed.rank() - 1;
  const auto shape = sparse.shape.dims(), values = sparse.values.shape().dims();
  const auto starts_with_batch = [&](std::span<const std::uint64_t> dims, std::size_t rank) {
    return dims.size() >= rank && std::ranges::equal(dims.first(batch_rank), shape.first(batch_rank));
  };
  const std::size_t block_rank = sparse.layout->is_blocked ? 2 : 0;
  const bool fit =
      sparse.compressed.rank() != 0 && shape.size() >= batch_rank + 2 &&
      starts_with_batch(sparse.compressed.shape().dims(), batch_rank + 1) && sparse.plain.rank() == batch_rank + 1 &&
      starts_with_batch(sparse.plain.shape().dims(), batch_rank + 1) &&
      starts_with_batch(values, batch_rank + 1 + block_rank) && values[batch_rank] == sparse.plain.shape()[batch_rank];
  if (!fit) complain(sparse.name, "has parts whose shapes do not go together");
  const auto dense = dense_dims(sparse, batch_rank + 1 + block_rank, batch_rank + 2);
  const std::uint64_t rows = shape[batch_rank], columns = shape[batch_rank + 1];
  const std::uint64_t block_rows = block_rank == 0 ? 1 : values[batch_rank + 1];
  const std::uint64_t block_columns = block_rank == 0 ? 1 : values[batch_rank + 2];
  if (block_rows == 0 || block_columns == 0 || rows % block_rows != 0 || columns % block_columns != 0)
    complain(sparse.name,
             fmt::format("of {} by {} cannot have blocks of {} by {}", rows, columns, block_rows, block_columns));
  sparse.batches = product(shape.first(batch_rank));
  sparse.rows = rows / block_rows;
  sparse.columns = columns / block_columns;
  const std::uint64_t lines = sparse.layout->is_by_column ? sparse.columns : sparse.rows;
  if (sparse.compressed.shape()[batch_rank] != fits(checked_add(lines, 1), "the size of a sparse tensor"))
    complain(sparse.name,
             fmt::format("has {} compressed indices for {} lines", sparse.compressed.shape()[batch_rank], lines));
  sparse.grid.block_rows = block_rows;
  sparse.grid.blocks_across = sparse.columns;
  sparse.grid.segment_bytes = fits(checked_mul(block_columns, product(dense)), "the size of a sparse tensor");
}

}  // namespace

bool is_sparse_layout(std::string_view layout) noexcept { return find_layout(layout) != nullptr; }

Tensor dense_tensor(const Composite& composite, std::span<const Tensor> parts) {
  Sparse sparse;
  sparse.name = composite.name;
  sparse.layout = find_layout(composite.layout);
  sparse.shape = composite.shape;
  if (parts.size() != (sparse.layout->is_compressed ? 3 : 2))
    complain(sparse.name, fmt::format("of layout {} has {} parts", composite.layout, parts.size()));
  sparse.values = parts.back();
  sparse.plain = parts[parts.size() - 2];
  if (sparse.layout->is_compressed) sparse.compressed = parts.front();

  const DType dtype = sparse.values.dtype();
  if (!kernels::can_add(dtype))
    throw Error(Errc::unsupported,
                fmt::format("the sparse tensor {} has values of dtype {}, which cannot be made dense",
                            quote(sparse.name), name(dtype)))
        .hint(leave_it_out() + ", or keep it as its parts");
  for (const Tensor& part : parts.first(parts.size() - 1)) require_integers(sparse.name, part);
  if (sparse.layout->is_compressed)
    lay_out_compressed(sparse);
  else
    lay_out_coordinates(sparse);

  const auto count = composite.shape.numel();
  const auto size = count ? bytes_of(dtype, *count) : std::nullopt;
  if (!size || *size > INT64_MAX)
    complain(sparse.name, fmt::format("of shape {} does not fit 64 bits", to_string(sparse.shape)));
  if (*size == 0) return Tensor(dtype, composite.shape, nullptr);

  sparse.grid.segment_bytes *= info(dtype).block_bytes;  // at most the size of the whole tensor
  if (sparse.grid.block_rows == 1) sparse.grid.blocks_across = *size / sparse.grid.segment_bytes;
  sparse.grid.row_bytes = sparse.grid.blocks_across * sparse.grid.segment_bytes;
  const bool has_data = std::ranges::all_of(parts, [](const Tensor& part) { return part.has_data(); });
  if (!has_data) return Tensor(dtype, composite.shape, meta_storage(*size));
  return Tensor(dtype, composite.shape, std::make_shared<SparseStorage>(std::move(sparse), *size));
}

std::uint64_t index_memory_bytes(std::span<const Tensor> parts) noexcept {
  constexpr std::uint64_t kEntryBytes = 16;  // the number of a block, and of its values
  std::uint64_t entries = 0;
  for (const Tensor& part : parts.first(parts.size() - 1)) {
    // Indices of COO into no dimension have no elements, but there can still be many entries.
    const std::uint64_t count = part.rank() == 0 ? 1 : std::max(part.numel(), part.shape()[part.rank() - 1]);
    entries = checked_add(entries, count).value_or(UINT64_MAX);
  }
  return checked_mul(entries, kEntryBytes).value_or(UINT64_MAX);
}

}  // namespace ballast
