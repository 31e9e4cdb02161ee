// JobRecord: which jobs of a file are done, noted behind the end of the file, so that a later run continues it.
//
// A note may reach the disk before the bytes that it speaks of, so notes count only for as long as the system runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/sink.hpp"

namespace ballast {

class JobRecord {
 public:
  // Sizes the sink. `buffer_bytes` is what the file was cut into jobs by: another run counts only if it cut alike.
  JobRecord(io::Sink& sink, std::uint64_t file_bytes, std::size_t jobs, std::uint64_t buffer_bytes);

  bool is_done(std::size_t job) const { return was_done_[job]; }  // by an earlier run
  void note(std::size_t job);                                     // by this one; several threads may call it

 private:
  io::Sink& sink_;
  std::uint64_t begin_ = 0;  // of the notes, a byte for each job
  std::vector<bool> was_done_;
};

}  // namespace ballast
