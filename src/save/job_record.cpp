#include "save/job_record.hpp"

#include <span>
#include <string>

#include <fmt/format.h>

#include "io/posix.hpp"

namespace ballast {

JobRecord::JobRecord(io::Sink& sink, std::uint64_t file_bytes, std::size_t jobs, std::uint64_t buffer_bytes)
    : sink_(sink), was_done_(jobs) {
  const std::string run = io::run_of_the_system();
  const std::string head = fmt::format("ballast.jobs/1 {} {} {}\n", jobs, buffer_bytes, run);
  begin_ = file_bytes + head.size();
  const bool is_continued = sink.resume(file_bytes, head.size() + jobs);
  if (is_continued && !run.empty()) {
    std::string text(head.size() + jobs, '\0');
    sink.read_back(file_bytes, std::as_writable_bytes(std::span(text)));
    if (text.starts_with(head)) {
      for (std::size_t i = 0; i < jobs; ++i) was_done_[i] = text[head.size() + i] == '1';
      return;
    }
  }
  const std::string fresh = head + std::string(jobs, '0');
  sink.write_at(file_bytes, std::as_bytes(std::span(fresh)));
}

void JobRecord::note(std::size_t job) {
  constexpr char kDone = '1';
  sink_.write_at(begin_ + job, std::as_bytes(std::span(&kDone, 1)));
}

}  // namespace ballast
