// Jobs: the work of writing one file, cut by bytes so that every thread has some.
//
//   direct    one mapped range, written straight from the map
//   gathered  small ranges, read into one buffer; those that are neighbours in the file are written at once
//   streamed  everything from one sequential storage, read in order by one thread, a buffer at a time; for a team, also
//             from a storage that makes all of its bytes at once and keeps them: other processes would make them again
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/save.hpp>

#include "core/thread_pool.hpp"

namespace ballast {

struct Job {
  enum class Kind : std::uint8_t { direct, gathered, streamed };

  // Bytes [first, first + size) of an item's contiguous form, which go to `offset` in the file.
  struct Part {
    const Tensor* tensor;
    std::uint64_t first, size, offset;
    std::size_t item;         // the number of the item in the file
    std::uint32_t crc32 = 0;  // of these bytes, once they are written
  };

  Kind kind;
  std::vector<Part> parts;
  std::uint64_t bytes = 0;
};

// How large jobs are.
struct JobSizes {
  std::uint64_t buffer;    // the most that a gathered job may take: a granule is not cut if it fits in here
  std::uint64_t gathered;  // what it takes if granules allow, at most `buffer`
  std::uint64_t direct;
  bool is_shared = false;     // several processes carry the jobs out
  bool whole_leaves = false;  // digests are wanted, so every part begins with a leaf of its item's
};

// For a plan of so many bytes: jobs that are worth the call, and many enough that a team can share them evenly.
JobSizes job_sizes(std::uint64_t buffer_bytes, std::uint64_t plan_bytes, unsigned members, bool whole_leaves = false);

// The largest granule of what a gathered job reads: a buffer should hold one.
std::uint64_t largest_granule(const SavePlan& plan);

// `written` says which range of each item is in the file already; it may be empty.
std::vector<Job> make_jobs(const SavePlan::File& file, const JobSizes& sizes, std::span<const ByteRange> written = {});

}  // namespace ballast
