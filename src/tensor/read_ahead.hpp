// ReadAhead: tells storages which bytes will be read next, some megabytes before they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <ballast/tensor.hpp>

namespace ballast {

// Ranges that are announced together, with one call for each storage.
class Announcement {
 public:
  void add(const Tensor& tensor, ByteRange range);  // of the tensor's contiguous form
  void make();
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::map<const Storage*, std::vector<ByteRange>> ranges_;  // in the order in which they were added
  std::uint64_t bytes_ = 0;
};

// For work that is cut into jobs, which begin in ascending order.
class ReadAhead {
 public:
  using Describe = std::function<void(std::size_t job, Announcement& reads)>;

  // `describe` adds what a job reads; it must stay valid as long as this object.
  ReadAhead(std::size_t jobs, Describe describe) : sizes_(jobs), describe_(std::move(describe)) {}

  // Says that a job begins. Announces its reads and those of the next jobs, unless they were announced already, until
  // some megabytes are announced for jobs that have not begun. May be called by several threads at once.
  void begin(std::size_t job);

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> sizes_;  // bytes of the jobs that were announced
  std::size_t next_ = 0;
  std::uint64_t waiting_bytes_ = 0;  // bytes announced for jobs that have not begun
  Describe describe_;
};

}  // namespace ballast
