// FlatArray: a vector of plain values that grows in place if the system can do that.
//
// A pickle's nodes may take gigabytes. A std::vector would hold them twice whenever it grows, and touch every page
// again; the system can move page tables instead, and realloc leaves that to chance for sizes that a program has freed
// before. (Huge pages do not help: they are split when they move.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

namespace ballast::pickle {

// Returns memory of another size with the same content, as far as it fits. 0 bytes mean no memory.
void* resize_flat(void* memory, std::size_t bytes, std::size_t new_bytes);

template <class T>
class FlatArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  FlatArray() = default;
  FlatArray(FlatArray&& other) noexcept { swap(other); }
  FlatArray& operator=(FlatArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~FlatArray() { resize(0); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T* data() const noexcept { return data_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  void push_back(const T& value) {
    const T kept = value;  // `value` may be an element of this array
    if (size_ == capacity_) grow(size_ + 1);
    ::new (static_cast<void*>(data_ + size_++)) T(kept);
  }
  void pop_back() noexcept { --size_; }
  void shrink(std::size_t size) noexcept { size_ = size; }
  void extend(std::size_t size, const T& value) {
    while (size_ < size) push_back(value);
  }

  // Moves the elements from `first` on to the end of another array. If they are many, their memory is given back to the
  // system piece by piece, the last piece first, so that they are never held twice.
  void move_tail_to(FlatArray& other, std::size_t first) {
    const std::size_t end = other.size_ + (size_ - first);
    if (end > other.capacity_) other.grow(end);
    while (size_ > first) {
      const std::size_t count = std::min(size_ - first, kPieceBytes / sizeof(T));
      size_ -= count;
      std::memcpy(static_cast<void*>(other.data_ + other.size_ + (size_ - first)), data_ + size_, count * sizeof(T));
      if (size_ > first) resize(size_);
    }
    other.size_ = end;
  }

 private:
  static constexpr std::size_t kFirst = 16;
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

  void swap(FlatArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  void grow(std::size_t at_least) {
    std::size_t capacity = capacity_ + capacity_ / 2;
    if (capacity < kFirst) capacity = kFirst;
    if (capacity < at_least) capacity = at_least;
    if (capacity > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    resize(capacity);
  }

  void resize(std::size_t capacity) {
    data_ = static_cast<T*>(resize_flat(static_cast<void*>(data_), capacity_ * sizeof(T), capacity * sizeof(T)));
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace ballast::pickle
