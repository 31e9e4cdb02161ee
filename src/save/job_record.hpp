// JobRecord: which jobs of a file are done, noted behind the end of the file, so that a later run continues it.
//
// A note may reach the disk before the bytes that it speaks of, so notes count only for as long as the system runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ballast/team.hpp>

#include "io/sink.hpp"
#include "save/jobs.hpp"

namespace ballast {

class JobRecord {
 public:
  // Sizes the sink. `sizes` is what the file was cut into jobs by: another run counts only if it cut alike. The first
  // member of the team tells the others what an earlier run has done.
  JobRecord(io::Sink& sink, Team& team, std::uint64_t file_bytes, std::size_t jobs, const JobSizes& sizes);

  bool is_done(std::size_t job) const { return was_done_[job] != 0; }  // by an earlier run
  void note(std::size_t job);                                          // by this one; several threads may call it

 private:
  void begin(std::uint64_t file_bytes, const JobSizes& sizes);

  io::Sink& sink_;
  Team& team_;
  std::uint64_t begin_ = 0;  // of the notes, a byte for each job
  std::vector<std::uint8_t> was_done_;
};

}  // namespace ballast
