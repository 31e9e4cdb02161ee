// Views of tensors: the same storage, another reading of it.
#include <ballast/error.hpp>
#include <ballast/tensor.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ballast {
namespace {

// One dimension of a view that is being made.
struct Dim {
  std::uint64_t size;
  std::int64_t stride;
};

Error bad_slice(const std::string& what) { return Error(Errc::invalid_argument, what); }

// Python's rule for one end of a range: a negative end counts from the back, and the result is clamped to [low, high].
std::int64_t clamp_end(std::int64_t i, std::int64_t size, std::int64_t low, std::int64_t high) {
  if (i < 0) i = i < -size ? -1 : i + size;
  return std::clamp(i, low, high);
}

// Returns where a range begins in a dimension, and how many steps it takes.
std::pair<std::int64_t, std::uint64_t> walk(const SliceIndex& range, std::int64_t size) {
  const std::int64_t step = range.step;
  if (step == 0) throw bad_slice("a slice has a step of 0");
  if (step > 0) {
    const std::int64_t start = range.start ? clamp_end(*range.start, size, 0, size) : 0;
    const std::int64_t stop = range.stop ? clamp_end(*range.stop, size, 0, size) : size;
    if (start >= stop) return {0, 0};
    return {start, static_cast<std::uint64_t>(stop - start - 1) / static_cast<std::uint64_t>(step) + 1};
  }
  const std::int64_t start = range.start ? clamp_end(*range.start, size, -1, size - 1) : size - 1;
  const std::int64_t stop = range.stop ? clamp_end(*range.stop, size, -1, size - 1) : -1;
  if (start <= stop) return {0, 0};
  const auto back = static_cast<std::uint64_t>(-(step + 1)) + 1;  // |step|, for the smallest integer too
  return {start, static_cast<std::uint64_t>(start - stop - 1) / back + 1};
}

std::int64_t signed_size(std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(INT64_MAX))
    throw bad_slice("a dimension of " + std::to_string(size) + " cannot be sliced");
  return static_cast<std::int64_t>(size);
}

// "..." stands for as many whole dimensions as the other indices leave over.
Slice expand(const Slice& slice, std::size_t rank) {
  const auto is_ellipsis = [](const SliceIndex& i) { return i.kind == SliceIndex::Kind::ellipsis; };
  const auto ellipses = std::count_if(slice.begin(), slice.end(), is_ellipsis);
  if (ellipses > 1) throw bad_slice("a slice has more than one \"...\"");
  const std::size_t given = slice.size() - static_cast<std::size_t>(ellipses);
  if (given > rank) {
    throw bad_slice("a slice of " + std::to_string(given) + " indices for a tensor of rank " + std::to_string(rank));
  }
  const auto here = std::find_if(slice.begin(), slice.end(), is_ellipsis);
  Slice full(slice.begin(), here);
  full.insert(full.end(), rank - given, SliceIndex::range({}, {}));
  if (here != slice.end()) full.insert(full.end(), here + 1, slice.end());
  return full;
}

// The offset, moved by whole elements; throws if the move ends inside a byte or a block.
std::uint64_t moved(const Tensor& tensor, std::int64_t elements) {
  const DTypeInfo& type = info(tensor.dtype());
  if (elements % type.block_elements != 0) {
    throw Error(Errc::unsupported, "a slice of " + std::string(type.name) + " begins inside a block of " +
                                       std::to_string(type.block_elements) + " elements")
        .hint("slice along another dimension, or cast first");
  }
  return tensor.offset() + static_cast<std::uint64_t>(elements / type.block_elements * type.block_bytes);
}

Tensor make_view(const Tensor& tensor, const std::vector<Dim>& dims, std::uint64_t offset) {
  std::vector<std::uint64_t> sizes;
  Strides strides;
  for (const Dim& dim : dims) {
    sizes.push_back(dim.size);
    strides.push_back(dim.stride);
  }
  const DTypeInfo& type = info(tensor.dtype());
  if (type.block_elements > 1 && Shape(sizes).numel().value_or(0) % type.block_elements != 0) {
    throw Error(Errc::unsupported, "a view of " + std::string(type.name) + " ends inside a block of " +
                                       std::to_string(type.block_elements) + " elements")
        .hint("slice along another dimension, or cast first");
  }
  return Tensor(tensor.dtype(), Shape(sizes), std::move(strides), tensor.storage(), offset);
}

}  // namespace

Tensor Tensor::slice(const Slice& slice) const {
  const Slice full = expand(slice, rank());
  // An empty tensor has no strides worth using, and its other dimensions may be absurdly large.
  const Strides steps = numel() == 0 ? Strides(rank(), 0) : strides();
  std::vector<Dim> dims;
  std::int64_t start = 0;  // in elements
  for (std::size_t i = 0; i < full.size(); ++i) {
    const std::int64_t size = signed_size(shape_[i]);
    if (full[i].kind == SliceIndex::Kind::at) {
      std::int64_t at = *full[i].start;
      if (at < -size || at >= size) {
        throw bad_slice("index " + std::to_string(at) + " of a dimension of " + std::to_string(size));
      }
      start += (at < 0 ? at + size : at) * steps[i];
      continue;
    }
    const auto [first, count] = walk(full[i], size);
    start += first * steps[i];
    // The stride of a dimension of one element is never used; its product could overflow.
    dims.push_back({count, count > 1 ? full[i].step * steps[i] : steps[i]});
  }
  const bool empty = std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return d.size == 0; });
  return make_view(*this, dims, empty ? offset_ : moved(*this, start));
}

Tensor Tensor::permute(std::span<const std::size_t> order) const {
  std::vector<bool> seen(rank(), false);
  std::vector<Dim> dims;
  const Strides steps = strides();
  for (const std::size_t i : order) {
    if (i >= rank() || seen[i]) throw Error(Errc::invalid_argument, "not a permutation of the dimensions");
    seen[i] = true;
    dims.push_back({shape_[i], steps[i]});
  }
  if (dims.size() != rank()) throw Error(Errc::invalid_argument, "not a permutation of the dimensions");
  return make_view(*this, dims, offset_);
}

Tensor Tensor::transpose() const {
  if (rank() != 2) throw Error(Errc::invalid_argument, "only a matrix can be transposed; use permute()");
  const std::size_t order[] = {1, 0};
  return permute(order);
}

Tensor Tensor::reshape(Shape shape) const {
  if (shape.numel() != numel()) {
    throw Error(Errc::invalid_argument, to_string(shape_) + " cannot be reshaped to " + to_string(shape));
  }
  if (!is_contiguous()) {
    throw Error(Errc::unsupported, "a strided view cannot be reshaped without a copy").hint("call contiguous() first");
  }
  return Tensor(dtype_, std::move(shape), storage_, offset_);
}

Tensor Tensor::bitcast(DType dtype) const {
  const DTypeInfo &from = info(dtype_), &to = info(dtype);
  if (!is_contiguous()) {
    throw Error(Errc::unsupported, "a strided view cannot be read as another dtype").hint("call contiguous() first");
  }
  const bool same_size = from.block_elements == to.block_elements && from.block_bytes == to.block_bytes;
  if (same_size) return Tensor(dtype, shape_, storage_, offset_);

  const auto row = shape_.empty() ? std::nullopt : bytes_of(dtype_, shape_[rank() - 1]);
  if (!row || *row % to.block_bytes != 0) {
    throw Error(Errc::invalid_argument, "the last dimension of " + std::string(from.name) + " " + to_string(shape_) +
                                            " does not fill whole elements of " + std::string(to.name));
  }
  std::vector<std::uint64_t> dims(shape_.begin(), shape_.end());
  dims.back() = *row / to.block_bytes * to.block_elements;
  return Tensor(dtype, Shape(dims), storage_, offset_);
}

}  // namespace ballast
