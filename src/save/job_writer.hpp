// JobWriter: carries out the jobs of one file. It reads what a job says, looks at the bytes on their way, and writes
// them to the sink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <ballast/save.hpp>

#include "core/progress_meter.hpp"
#include "io/sink.hpp"
#include "save/digests.hpp"
#include "save/jobs.hpp"

namespace ballast {

// What is to be found out about the bytes that are written.
struct Looks {
  std::vector<bool> wants_crc32;  // of each item
  Digests* digests = nullptr;     // null if nobody asks for digests
};

class JobWriter {
 public:
  // All must outlive this object. `workers` may call carry_out() and look_again() at the same time.
  JobWriter(const SavePlan::File& file, io::Sink& sink, std::uint64_t buffer_bytes, const Limits& limits,
            const Looks& looks, ProgressMeter& meter, unsigned workers);

  void carry_out(Job& job, unsigned worker);
  void look_again(Job& job, unsigned worker);  // at a job that an earlier run has carried out

  bool has_overflows(const Job& job);
  std::span<Overflows> overflows() noexcept { return overflows_; }  // of each item
  std::span<const Overflows> overflows() const noexcept { return overflows_; }
  std::uint64_t held_bytes() const noexcept;  // in buffers

 private:
  using Buffer = std::vector<std::byte>;
  void write_direct(Job::Part& part, Buffer& buffer);
  void write_mapped(const Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes, Buffer& buffer);
  std::span<const std::byte> in_step(const Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes,
                                     Buffer& buffer);
  void write_gathered(Job& job, Buffer& buffer);
  void write_runs(Job& job, std::span<const std::byte> bytes);
  void write_streamed(Job& job, Buffer& buffer);
  Tensor held_whole(const Tensor& view) const;
  void read(const Job::Part& part, const Tensor& source, std::uint64_t first, std::span<std::byte> out);
  bool is_looked_at(const Job::Part& part) const { return looks_.wants_crc32[part.item] || looks_.digests != nullptr; }
  void look_at_mapped(Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes);
  void look_at(Job::Part& part, std::uint64_t done, std::span<const std::byte> bytes);
  void done_with(const Job::Part& part);

  const SavePlan::File& file_;
  io::Sink& sink_;
  std::uint64_t buffer_bytes_;
  const Limits& limits_;
  const Looks& looks_;
  ProgressMeter& meter_;
  std::vector<Buffer> buffers_;  // one for each worker, allocated when first needed
  std::mutex overflows_mutex_;
  std::vector<Overflows> overflows_;  // of each item
};

}  // namespace ballast
