// Tensor: a cheap value that says what some bytes mean: dtype, shape, strides, shared storage, offset.
//
// A tensor shares its storage and keeps it alive, so a tensor may outlive the checkpoint that it came from. Making,
// copying and viewing a tensor reads nothing. All const member functions may be called from several threads at once.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ballast/device.hpp>
#include <ballast/dtype.hpp>
#include <ballast/float16.hpp>
#include <ballast/shape.hpp>
#include <ballast/slice.hpp>
#include <ballast/storage.hpp>

namespace ballast {

class Tensor {
 public:
  // An empty tensor: F32, shape [0].
  Tensor();

  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept = default;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  // Contiguous elements from byte `offset` of the storage. Throws Errc::malformed if they do not fit into the storage.
  Tensor(DType dtype, Shape shape, StoragePtr storage, std::uint64_t offset = 0);

  // A strided view; strides count elements. Every element must lie inside the storage.
  Tensor(DType dtype, Shape shape, Strides strides, StoragePtr storage, std::uint64_t offset = 0);

  // Copies values into memory of the tensor's own.
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
  std::uint64_t nbytes() const noexcept;  // the size of the contiguous form
  const StoragePtr& storage() const noexcept { return storage_; }
  std::uint64_t offset() const noexcept { return offset_; }  // of the first element, in bytes

  bool is_contiguous() const noexcept { return strides_ == nullptr; }
  bool has_data() const noexcept { return storage_ == nullptr || storage_->has_data(); }
  bool is_mapped() const { return nbytes() == 0 || (storage_ && !storage_->mapped().empty()); }

  // Views. They read nothing; a view that cannot be made without moving bytes is Errc::unsupported.
  Tensor slice(const Slice& slice) const;
  Tensor reshape(Shape shape) const;
  Tensor permute(std::span<const std::size_t> order) const;
  Tensor transpose() const;           // only for a matrix
  Tensor bitcast(DType dtype) const;  // the same bytes; the last dimension changes with the size of the elements

  // The same values in another dtype, made when they are read: cast (round to nearest even, NaN stays NaN), decoded
  // from ggml's blocks, or encoded into them, bit for bit as ggml does. This call itself reads nothing.
  Tensor to(DType dtype) const;

  // Reads bytes of the contiguous little-endian form, beginning at byte `first`. Ballast itself reads only in this way.
  void read(std::uint64_t first, std::span<std::byte> out) const;

  // read_many() does the same for many ranges, in one call to the storage if it can be: if the tensor is contiguous.
  // prefetch() and release() are those of Storage, in bytes of the contiguous form. For a strided view, prefetch()
  // fetches everything around its elements if that is not much more than the elements, and release() does nothing
  // unless the rows of the outermost dimension lie one after the other.
  void read_many(std::span<const ReadRange> ranges) const;
  void prefetch(std::span<const ByteRange> ranges) const;
  void release(ByteRange range) const;

  // These make bytes if needed, in memory of the new tensor's own, aligned to 64 bytes and filled by `threads` threads
  // (0: one for each core).
  Tensor contiguous(unsigned threads = 0) const;  // this tensor if it is contiguous
  Tensor aligned(unsigned threads = 0) const;     // this tensor if as<T>() works
  Tensor realize(unsigned threads = 0) const;     // always a copy

  // The same values on the device: this tensor if it is there already, otherwise a contiguous copy. A copy from another
  // device goes through this process.
  Tensor to(const Device& device, unsigned threads = 0) const;

  // The bytes in place, without a copy. Throws Errc::unsupported, with a hint, if there are none (a lazy or strided
  // tensor).
  std::span<const std::byte> bytes() const;

  // All values as numbers of T, copied in row-major order: values<float>() of any floating, integer, boolean or ggml
  // tensor, rounded once. T is float, double, float16, bfloat16, or an integer of 8 to 64 bits; as integers, only
  // integers and booleans that fit are read, else Errc::mismatch or Errc::unsupported.
  template <class T>
  std::vector<T> values() const;

  // The values in place, without a copy. T must be the dtype's own type. Throws with the hint to call aligned() if the
  // data in the file are not aligned for T. The file behind the span must not be truncated while the span is in use.
  template <class T>
  std::span<const T> as() const& {
    if (!stores<T>(dtype_)) throw_wrong_type(sizeof(T));
    const auto raw = bytes_aligned_to(alignof(T));
    return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const&& = delete;  // the tensor keeps the values alive: give it a name

 private:
  friend struct Doors;
  Tensor(const StoragePtr& storage, std::uint64_t offset, Shape shape, DType dtype)
      : storage_(storage), offset_(offset), shape_(std::move(shape)), dtype_(dtype) {}

  std::span<const std::byte> bytes_aligned_to(std::size_t alignment) const;
  [[noreturn]] void throw_wrong_type(std::size_t size) const;
  void check_fits() const;
  void check_inside(std::uint64_t first, std::uint64_t size) const;

  StoragePtr storage_;
  std::uint64_t offset_ = 0;
  [[no_unique_address]] Shape shape_;  // leaves room for the dtype
  DType dtype_ = DType::f32;
  std::shared_ptr<const Strides> strides_;  // null if contiguous
};

}  // namespace ballast
