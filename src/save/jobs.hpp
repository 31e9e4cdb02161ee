// Jobs: the work of writing one file, cut by bytes so that every thread has some.
//
//   direct    one mapped range, written straight from the map
//   gathered  neighbours in the file, read into one buffer and written at once
//   streamed  everything from one sequential storage, read in order by one thread, a buffer at a time
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/save.hpp>

namespace ballast {

struct Job {
  enum class Kind : std::uint8_t { direct, gathered, streamed };

  // Bytes [first, first + size) of an item's contiguous form, that go to `offset` in the file.
  struct Part {
    const Tensor* tensor;
    std::uint64_t first, size, offset;
  };

  Kind kind;
  std::vector<Part> parts;
  std::uint64_t bytes = 0;
};

// `buffer_bytes` is what one gathered job may take.
std::vector<Job> make_jobs(const SavePlan::File& file, std::uint64_t buffer_bytes);

}  // namespace ballast
