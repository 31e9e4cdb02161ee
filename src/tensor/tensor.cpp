#include <ballast/error.hpp>
#include <ballast/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/checked.hpp"
#include "core/thread_pool.hpp"
#include "io/section.hpp"
#include "kernels/cast.hpp"
#include "tensor/cast_storage.hpp"
#include "tensor/decoded_storage.hpp"
#include "tensor/element_layout.hpp"
#include "tensor/encoded_storage.hpp"
#include "tensor/owned_memory.hpp"
#include "tensor/pieces.hpp"
#include "tensor/strided_read.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kParallelBytes = 4 << 20;  // bytes of one piece of parallel work; less is not worth a thread

std::string describe(DType dtype, const Shape& shape) { return std::string(name(dtype)) + " " + to_string(shape); }

// Casts anything but ggml's blocks, which have to be decoded first.
Tensor numbers_to(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  if (info(dtype).kind == DTypeKind::ggml) return encoded(tensor, dtype);
  if (!kernels::can_cast(tensor.dtype(), dtype)) {
    throw Error(Errc::unsupported,
                "cannot cast " + std::string(name(tensor.dtype())) + " to " + std::string(name(dtype)));
  }
  if (tensor.numel() == 0) return Tensor(dtype, tensor.shape(), nullptr);
  return Tensor(dtype, tensor.shape(), cast_storage(tensor, dtype));
}

}  // namespace

Tensor::Tensor() : shape_{0} {}
Tensor::Tensor(const Tensor& other) = default;
Tensor& Tensor::operator=(const Tensor& other) = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept = default;
Tensor::~Tensor() = default;

Tensor::Tensor(DType dtype, Shape shape, StoragePtr storage, std::uint64_t offset)
    : storage_(std::move(storage)), offset_(offset), shape_(std::move(shape)), dtype_(dtype) {
  check_fits();
}

Tensor::Tensor(DType dtype, Shape shape, Strides strides, StoragePtr storage, std::uint64_t offset)
    : storage_(std::move(storage)), offset_(offset), shape_(std::move(shape)), dtype_(dtype) {
  if (strides.size() != shape_.rank()) {
    throw Error(Errc::malformed, "a tensor of rank " + std::to_string(shape_.rank()) + " has " +
                                     std::to_string(strides.size()) + " strides");
  }
  // The stride of a dimension of one element has no meaning, and no stride has any if there are no elements.
  const Strides plain = contiguous_strides(shape_);
  bool contiguous = shape_.numel() == 0;
  if (!contiguous) {
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (shape_[i] == 1) strides[i] = plain[i];
    }
    contiguous = strides == plain;
  }
  if (!contiguous) strides_ = std::make_shared<const Strides>(std::move(strides));
  check_fits();
}

// Checks that every element lies inside the storage. Nothing else decides that.
void Tensor::check_fits() const {
  const auto count = shape_.numel();
  const auto size = count ? bytes_of(dtype_, *count) : std::nullopt;
  if (!size) {
    throw Error(Errc::malformed,
                "the bytes of " + describe(dtype_, shape_) + " overflow, or end inside a byte or a block");
  }
  if (*size == 0) return;
  std::uint64_t low = 0, high = *size;
  if (strides_) {
    const ElementLayout layout = element_layout(dtype_, shape_, *strides_);
    low = layout.low_bytes;
    high = layout.high_bytes;
  }
  const std::uint64_t available = storage_ ? storage_->size_bytes() : 0;
  const auto end = checked_add(offset_, high);
  if (low > offset_ || !end || *end > available) {
    throw Error(Errc::malformed, describe(dtype_, shape_) + " at byte " + std::to_string(offset_) +
                                     " reaches outside its storage of " + std::to_string(available) + " bytes");
  }
}

Tensor Tensor::from_bytes(DType dtype, Shape shape, std::span<const std::byte> bytes) {
  OwnedMemory memory(bytes.size());
  if (!bytes.empty()) std::memcpy(memory.bytes().data(), bytes.data(), bytes.size());
  Tensor tensor(dtype, std::move(shape), memory_storage(memory.bytes(), memory.share()));
  if (tensor.nbytes() != bytes.size()) {
    throw Error(Errc::invalid_argument, describe(dtype, tensor.shape()) + " takes " + std::to_string(tensor.nbytes()) +
                                            " bytes, not " + std::to_string(bytes.size()));
  }
  return tensor;
}

Strides Tensor::strides() const { return strides_ ? *strides_ : contiguous_strides(shape_); }
std::uint64_t Tensor::numel() const noexcept { return shape_.numel().value_or(0); }
std::uint64_t Tensor::nbytes() const noexcept { return bytes_of(dtype_, numel()).value_or(0); }

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  if (info(dtype_).kind != DTypeKind::ggml) return numbers_to(*this, dtype);
  const bool is_direct = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  return is_direct ? decoded(*this, dtype) : numbers_to(decoded(*this, DType::f32), dtype);
}

void Tensor::check_inside(std::uint64_t first, std::uint64_t size) const {
  if (is_inside(first, size, nbytes())) return;
  throw Error(Errc::invalid_argument, "bytes " + std::to_string(first) + " to " + std::to_string(first + size) +
                                          " of a tensor of " + std::to_string(nbytes()) + " bytes");
}

void Tensor::read(std::uint64_t first, std::span<std::byte> out) const {
  check_inside(first, out.size());
  if (out.empty()) return;
  if (strides_) return strided_read(*this, first, out);
  storage_->read(offset_ + first, out);
}

void Tensor::read_many(std::span<const ReadRange> ranges) const {
  if (strides_ || !storage_) {
    for (const ReadRange& range : ranges) read(range.offset, range.out);
    return;
  }
  for (const ReadRange& range : ranges) check_inside(range.offset, range.out.size());
  storage_->read_many(io::shifted(ranges, offset_));
}

void Tensor::prefetch(std::span<const ByteRange> ranges) const {
  if (!storage_ || nbytes() == 0) return;
  if (!strides_) return storage_->prefetch(io::shifted(ranges, offset_));
  constexpr std::uint64_t kWorthIt = 4;
  const ElementLayout layout = element_layout(dtype_, shape_, *strides_);
  const ByteRange around{offset_ - layout.low_bytes, layout.low_bytes + layout.high_bytes};
  if (around.size / kWorthIt <= nbytes()) storage_->prefetch(std::span(&around, 1));
}

void Tensor::release(ByteRange range) const {
  if (!storage_ || range.size == 0) return;
  if (strides_) return strided_release(*this, range);
  storage_->release(offset_ + range.offset, range.size);
}

Tensor Tensor::realize(unsigned threads) const {
  const std::uint64_t size = nbytes();
  OwnedMemory memory(size);
  if (size != 0) {
    storage_->prepare({});
    if (size < 2 * kParallelBytes || storage_->is_sequential()) {
      read(0, memory.bytes());
    } else {
      const auto parts = split_by_bytes(size, is_contiguous() ? storage_->granule() : 1, kParallelBytes);
      ThreadPool(threads).run(parts.size(), [&](std::size_t i, unsigned) {
        const auto out = memory.bytes().subspan(parts[i].offset, parts[i].size);
        read_piece(*this, parts[i].offset, out, size >= kWorthStreaming);
      });
    }
  }
  return Tensor(dtype_, shape_, memory_storage(memory.bytes(), memory.share()));
}

Tensor Tensor::contiguous(unsigned threads) const { return is_contiguous() ? *this : realize(threads); }

Tensor Tensor::aligned(unsigned threads) const {
  const DTypeInfo& type = info(dtype_);
  const std::uint64_t alignment = type.block_elements == 1 && type.kind != DTypeKind::ggml ? type.block_bytes : 1;
  if (nbytes() == 0) return *this;
  if (is_contiguous() && is_mapped()) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes().data());
    if (address % alignment == 0) return *this;
  }
  return realize(threads);
}

std::span<const std::byte> Tensor::bytes() const {
  const std::uint64_t size = nbytes();
  if (size == 0) return {};
  if (strides_) throw Error(Errc::unsupported, "a strided view is not contiguous in memory").hint("call contiguous()");
  const auto whole = storage_->mapped();
  if (whole.empty()) {
    throw Error(Errc::unsupported, has_data() ? "the bytes of this tensor are made when they are read"
                                              : "a meta tensor has a dtype and a shape, but no data")
        .hint(has_data() ? "call realize()" : "");
  }
  return whole.subspan(offset_, size);
}

std::span<const std::byte> Tensor::bytes_aligned_to(std::size_t alignment) const {
  const auto raw = bytes();
  if (reinterpret_cast<std::uintptr_t>(raw.data()) % alignment == 0) return raw;
  throw Error(Errc::unsupported,
              "the file put these values at an address that is not a multiple of " + std::to_string(alignment))
      .hint("call aligned()");
}

void Tensor::throw_wrong_type(std::size_t size) const {
  throw Error(Errc::mismatch, "a tensor of dtype " + std::string(name(dtype_)) + " was asked for as another type of " +
                                  std::to_string(size) + " bytes")
      .hint("cast it with to(), or take its bytes()");
}

}  // namespace ballast
