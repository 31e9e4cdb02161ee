// FlatArray: a vector of plain values that grows in place where the system can.
//
// A pickle's nodes may take gigabytes. A std::vector would hold them twice whenever it grows, and touch every page
// again; realloc moves page tables instead. (Huge pages do not help: they are split when they move.)
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

namespace ballast::pickle {

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
  ~FlatArray() { std::free(data_); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T* data() const noexcept { return data_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  void push_back(const T& value) {
    const T kept = value;  // it may be one of ours
    if (size_ == capacity_) grow(size_ + 1);
    ::new (static_cast<void*>(data_ + size_++)) T(kept);
  }
  void pop_back() noexcept { --size_; }
  void shrink(std::size_t size) noexcept { size_ = size; }
  void extend(std::size_t size, const T& value) {
    while (size_ < size) push_back(value);
  }

 private:
  static constexpr std::size_t kFirst = 16;

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
    void* moved = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (moved == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace ballast::pickle
