// FileWriter: writes one file of a plan. Each member of a team carries out its share of the jobs; then all know what
// was found out about every byte, and the first member writes what depends on that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ballast/save.hpp>
#include <ballast/team.hpp>

#include "core/deal.hpp"
#include "core/progress_meter.hpp"
#include "core/thread_pool.hpp"
#include "io/sink.hpp"
#include "save/digests.hpp"
#include "save/job_record.hpp"
#include "save/job_writer.hpp"
#include "save/jobs.hpp"
#include "save/source_check.hpp"

namespace ballast {

// What all files of a plan are written with.
struct Workshop {
  const SavePlan& plan;
  const SaveOptions& options;
  Team& team;
  JobSizes sizes;
  ThreadPool& pool;
  SourceCheck& check;
  ProgressMeter& writing;
  ProgressMeter& reading_back;
  std::vector<std::uint64_t> loads{};  // the bytes that each member of the team has been dealt
};

class FileWriter {
 public:
  FileWriter(const SavePlan::File& file, io::Sink& sink, Workshop& shop);

  void write();
  void verify();  // checks that the sink gives back what was written
  void keep();    // lets a later run begin with this file, if the plan has a key
  void report(SaveReport& report) const;

 private:
  std::vector<Job> begin();
  std::vector<ByteRange> share_blocks();
  void carry_out(std::vector<Job>& jobs, const Deal& deal);
  void prepare(const std::vector<Job>& jobs, const Deal& deal);
  void hear_of_all(std::vector<Job>& jobs, const Deal& deal);
  void add_finding(Message& message, const Job::Part& part);
  void read_finding(Cursor& in, Job::Part& part);
  std::vector<std::uint32_t> checksums(std::span<const Job> jobs) const;
  void finish(std::span<const std::uint32_t> crc32s);
  void compare(const SavePlan::Piece& piece) const;
  bool has_overflows() const;

  const SavePlan::File& file_;
  io::Sink& sink_;
  Workshop& shop_;
  Team& team_;
  std::optional<Digests> digests_;  // if somebody asks for digests
  Looks looks_;
  JobWriter writer_;
  std::optional<JobRecord> record_;      // if a later run may continue this one
  std::vector<SavePlan::Piece> pieces_;  // those that depend on the data: see SavePlan::File::finish
};

}  // namespace ballast
