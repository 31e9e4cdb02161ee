// ReadAhead: storages are told what will be read next, some megabytes before it is.
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

// What is announced at once: a call for each storage.
class Announcement {
 public:
  void add(const Tensor& tensor, ByteRange range);  // of its contiguous form
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

  // `describe` adds what a job reads, and must stay good as long as this.
  ReadAhead(std::size_t jobs, Describe describe) : sizes_(jobs), describe_(std::move(describe)) {}

  // A job begins: announces its reads, and those of the next jobs, unless they were announced already, until some
  // megabytes are announced that no job has begun with. May be called by several threads at once.
  void begin(std::size_t job);

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> sizes_;  // in bytes, of the jobs that were announced
  std::size_t next_ = 0;
  std::uint64_t waiting_bytes_ = 0;  // announced, of jobs that have not begun
  Describe describe_;
};

}  // namespace ballast
