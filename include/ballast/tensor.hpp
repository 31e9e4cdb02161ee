// Tensor: a cheap value that says what some bytes mean. dtype, shape, strides, shared storage, offset.
//
// A tensor keeps its storage alive, so it outlives the checkpoint that it came from. Making, copying and viewing one
// reads nothing. All const member functions may be called from several threads.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <ballast/device.hpp>
#include <ballast/dtype.hpp>
#include <ballast/float16.hpp>
#include <ballast/shape.hpp>
#include <ballast/slice.hpp>
#include <ballast/storage.hpp>

namespace ballast {

class Tensor {
 public:
  // No tensor yet: F32, shape [0].
  Tensor();

  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept = default;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  // Contiguous elements from byte `offset` of the storage. Throws Errc::malformed where they do not fit in it.
  Tensor(DType dtype, Shape shape, StoragePtr storage, std::uint64_t offset = 0);

  // A strided view; strides count elements. Every element must lie inside the storage.
  Tensor(DType dtype, Shape shape, Strides strides, StoragePtr storage, std::uint64_t offset = 0);

  // The same, for readers that have checked it already: everything else goes wrong if they have not.
  static Tensor unchecked(DType dtype, Shape shape, const StoragePtr& storage, std::uint64_t offset) {
    return Tensor(storage, offset, std::move(shape), dtype);
  }

  // A copy of values in memory.
  template <class T>
  static Tensor from_values(DType dtype, Shape shape, std::span<const T> values) {
    return from_bytes(dtype, std::move(shape), std::as_bytes(values));
  }
  static Tensor from_bytes(DType dtype, Shape shape, std::span<const std::byte> bytes);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t rank() const noexcept { return shape_.rank(); }
  Strides strides() const;
  std::uint64_t numel() const noexcept;
  std::uint64_t nbytes() const noexcept;  // of the contiguous form
  const StoragePtr& storage() const noexcept { return storage_; }
  std::uint64_t offset() const noexcept { return offset_; }  // in bytes, of the first element

  bool is_contiguous() const noexcept { return strides_ == nullptr; }
  bool has_data() const noexcept { return storage_ == nullptr || storage_->has_data(); }
  bool is_mapped() const { return nbytes() == 0 || (storage_ && !storage_->mapped().empty()); }

  // Views. None of them reads; a view that cannot be made without moving bytes is Errc::unsupported.
  Tensor slice(const Slice& slice) const;
  Tensor reshape(Shape shape) const;
  Tensor permute(std::span<const std::size_t> order) const;
  Tensor transpose() const;           // of a matrix
  Tensor bitcast(DType dtype) const;  // the same bytes; the last dimension takes the difference in size

  // The same values in another dtype, made when they are read: cast (round to nearest even, NaN stays NaN), decoded
  // from ggml's blocks, or encoded into them, with ggml's own bits. Lazy.
  Tensor to(DType dtype) const;

  // Bytes of the contiguous little-endian form, from `first` on. This is the one way by which Ballast itself reads.
  void read(std::uint64_t first, std::span<std::byte> out) const;

  // Those that make bytes, only when needed: in memory of our own, aligned to 64 bytes, filled by `threads` (0: all).
  Tensor contiguous(unsigned threads = 0) const;  // itself if it is
  Tensor aligned(unsigned threads = 0) const;     // itself if as<T>() works
  Tensor realize(unsigned threads = 0) const;     // always a copy

  // The same values there: itself if it is there, else a contiguous copy; from another device, by way of this process.
  Tensor to(const Device& device, unsigned threads = 0) const;

  // The bytes in place. Throws Errc::unsupported, with a hint, where there are none (lazy, strided).
  std::span<const std::byte> bytes() const;

  // The values in place, without a copy. T must be the dtype's own type; where the file put the data askew,
  // throws with the hint to call aligned(). The file behind the span must not be truncated while it is in use.
  template <class T>
  std::span<const T> as() const& {
    if (!stores<T>(dtype_)) throw_wrong_type(sizeof(T));
    const auto raw = bytes_aligned_to(alignof(T));
    return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const&& = delete;  // the tensor keeps the values alive: give it a name

 private:
  Tensor(const StoragePtr& storage, std::uint64_t offset, Shape shape, DType dtype)
      : storage_(storage), offset_(offset), shape_(std::move(shape)), dtype_(dtype) {}

  std::span<const std::byte> bytes_aligned_to(std::size_t alignment) const;
  [[noreturn]] void throw_wrong_type(std::size_t size) const;
  void check_fits() const;

  StoragePtr storage_;
  std::uint64_t offset_ = 0;
  [[no_unique_address]] Shape shape_;  // leaves room for the dtype
  DType dtype_ = DType::f32;
  std::shared_ptr<const Strides> strides_;  // null where contiguous
};

}  // namespace ballast
