#include "save/job_record.hpp"

#include <span>
#include <string>

#include <fmt/format.h>

#include "core/deal.hpp"
#include "io/posix.hpp"

namespace ballast {

JobRecord::JobRecord(io::Sink& sink, Team& team, std::uint64_t file_bytes, std::size_t jobs, const JobSizes& sizes)
    : sink_(sink), team_(team), was_done_(jobs) {
  if (team.is_first()) begin(file_bytes, sizes);
  tell(team, std::span(&begin_, 1));
  tell(team, std::span(was_done_));
}

void JobRecord::begin(std::uint64_t file_bytes, const JobSizes& sizes) {
  const std::size_t jobs = was_done_.size();
  const std::string run = io::run_of_the_system();
  const std::string head = fmt::format("ballast.jobs/3 {} {} {} {} {} {}\n", jobs, sizes.buffer, sizes.gathered,
                                       sizes.direct, sizes.whole_leaves ? 1 : 0, run);
  begin_ = file_bytes + head.size();
  const bool is_continued = sink_.resume(file_bytes, head.size() + jobs);
  if (is_continued && !run.empty()) {
    std::string text(head.size() + jobs, '\0');
    sink_.read_back(file_bytes, std::as_writable_bytes(std::span(text)));
    if (text.starts_with(head)) {
      for (std::size_t i = 0; i < jobs; ++i) was_done_[i] = text[head.size() + i] == '1' ? 1 : 0;
      return;
    }
  }
  const std::string fresh = head + std::string(jobs, '0');
  sink_.write_at(file_bytes, std::as_bytes(std::span(fresh)));
}

// A machine may fail whose note is on the disk before the bytes that it speaks of, while the first member's lives on.
void JobRecord::note(std::size_t job) {
  constexpr char kDone = '1';
  if (!team_.is_first()) sink_.sync();
  sink_.write_at(begin_ + job, std::as_bytes(std::span(&kDone, 1)));
}

}  // namespace ballast
