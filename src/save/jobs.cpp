#include "save/jobs.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/thread_pool.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kDirectBytes = std::uint64_t{64}
                                       << 10;  // smaller ranges are cheaper to gather than to write alone
constexpr std::uint64_t kDirectPieceBytes = std::uint64_t{4} << 20;  // of a direct range: enough to keep the disk busy
constexpr std::uint64_t kJobsEach = 64;                              // at least, for each member of a team

bool is_made_at_once(const Storage& storage) {
  return !storage.derivation().from.empty() && storage.memory_bytes() >= storage.size_bytes();
}

class JobMaker {
 public:
  explicit JobMaker(const JobSizes& sizes) : sizes_(sizes) {}

  void add(const SavePlan::Item& item, std::size_t number, ByteRange written) {
    const std::uint64_t size = item.tensor.nbytes(), end = written.offset + written.size;
    if (written.size == 0) return add_range(item, number, {0, size});
    add_range(item, number, {0, written.offset});
    add_range(item, number, {end, size - end});
  }

  std::vector<Job> finish() {
    flush();
    for (auto& [storage, job] : streams_) {
      std::stable_sort(job.parts.begin(), job.parts.end(),
                       [](const Job::Part& a, const Job::Part& b) { return a.tensor->offset() < b.tensor->offset(); });
      jobs_.push_back(std::move(job));
    }
    // A stream cannot be divided among threads: the longest begin first, so that none is left to run alone at the end.
    std::stable_sort(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) {
      const auto weight = [](const Job& job) { return job.kind == Job::Kind::streamed ? job.bytes : 0; };
      return weight(a) > weight(b);
    });
    return std::move(jobs_);
  }

 private:
  void add_range(const SavePlan::Item& item, std::size_t number, ByteRange range) {
    const Tensor& tensor = item.tensor;
    if (range.size == 0) return;
    const auto part = [&](const ByteRange& piece) {
      const std::uint64_t first = range.offset + piece.offset;
      return Job::Part{&tensor, first, piece.size, item.offset + first, number};
    };
    if (tensor.storage()->is_sequential() || (sizes_.is_shared && is_made_at_once(*tensor.storage()))) {
      Job& stream = streams_.try_emplace(tensor.storage().get(), Job{Job::Kind::streamed, {}}).first->second;
      return add_part(stream, part({0, range.size}));
    }
    const bool in_place = tensor.is_contiguous() && tensor.is_mapped();
    if (in_place && range.size >= kDirectBytes) {
      for (const ByteRange& piece : split_by_bytes(range.size, 1, sizes_.direct))
        jobs_.push_back({Job::Kind::direct, {part(piece)}, piece.size});
      return;
    }
    for (const ByteRange& piece : split_by_bytes(range.size, granule_of(tensor), sizes_.gathered)) gather(part(piece));
  }

  static void add_part(Job& job, const Job::Part& part) {
    job.parts.push_back(part);
    job.bytes += part.size;
  }

  // The storage's granule, in whole leaves of the item's digest; just a leaf if that is more than a buffer.
  std::uint64_t granule_of(const Tensor& tensor) const {
    const std::uint64_t worth = tensor.is_contiguous() ? tensor.storage()->granule() : 1;
    if (worth > sizes_.buffer) return kernels::kLeafBytes;
    const std::uint64_t both = std::lcm<std::uint64_t>(worth, kernels::kLeafBytes);
    return both <= sizes_.buffer ? both : kernels::kLeafBytes;
  }

  // Parts share a buffer until it is full, so that their storage is asked once.
  void gather(const Job::Part& part) {
    if (group_.bytes + part.size > sizes_.gathered) flush();
    add_part(group_, part);
  }

  void flush() {
    if (!group_.parts.empty()) jobs_.push_back(std::exchange(group_, {Job::Kind::gathered, {}}));
  }

  JobSizes sizes_;
  std::vector<Job> jobs_;
  std::map<const Storage*, Job> streams_;
  Job group_{Job::Kind::gathered, {}};
};

}  // namespace

JobSizes job_sizes(std::uint64_t buffer_bytes, std::uint64_t plan_bytes, unsigned members) {
  if (members == 1) return {buffer_bytes, buffer_bytes, kDirectPieceBytes};
  const std::uint64_t each = plan_bytes / members / kJobsEach / kernels::kLeafBytes * kernels::kLeafBytes;
  const std::uint64_t most = std::min(buffer_bytes, kDirectPieceBytes);
  const std::uint64_t size = std::clamp<std::uint64_t>(each, kernels::kLeafBytes, most);
  return {buffer_bytes, size, size, true};
}

std::vector<Job> make_jobs(const SavePlan::File& file, const JobSizes& sizes, std::span<const ByteRange> written) {
  JobMaker maker(sizes);
  for (std::size_t i = 0; i < file.items.size(); ++i)
    maker.add(file.items[i], i, written.empty() ? ByteRange{} : written[i]);
  return maker.finish();
}

}  // namespace ballast
