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
constexpr std::uint64_t kGranulesToCutOne = 8;                       // in a part whose ends cannot be those of granules
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
    const Cut cut = cut_of(tensor);
    for (const ByteRange& piece : split_by_bytes(range.size, cut.granule, cut.target)) gather(part(piece));
  }

  static void add_part(Job& job, const Job::Part& part) {
    job.parts.push_back(part);
    job.bytes += part.size;
  }

  // Parts are whole granules of the storage, and whole leaves of the item's digest if that is wanted, or costs nothing.
  // If not even a buffer holds both, a granule at the end of a part is read twice, so a part has several granules.
  struct Cut {
    std::uint64_t granule, target;
  };
  Cut cut_of(const Tensor& tensor) const {
    const std::uint64_t worth = tensor.is_contiguous() ? tensor.storage()->granule() : 1;
    const bool fits = worth <= sizes_.buffer;
    const std::uint64_t both = fits ? std::lcm<std::uint64_t>(worth, kernels::kLeafBytes) : UINT64_MAX;
    if (both <= (sizes_.whole_leaves ? sizes_.buffer : sizes_.gathered)) return {both, sizes_.gathered};
    if (fits && !sizes_.whole_leaves) return {worth, sizes_.gathered};
    const std::uint64_t several = fits ? worth * kGranulesToCutOne : sizes_.buffer;
    return {kernels::kLeafBytes, std::clamp(several, sizes_.gathered, sizes_.buffer)};
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

JobSizes job_sizes(std::uint64_t buffer_bytes, std::uint64_t plan_bytes, unsigned members, bool whole_leaves) {
  if (members == 1) return {buffer_bytes, buffer_bytes, kDirectPieceBytes, false, whole_leaves};
  const std::uint64_t each = plan_bytes / members / kJobsEach / kernels::kLeafBytes * kernels::kLeafBytes;
  const std::uint64_t most = std::min(buffer_bytes, kDirectPieceBytes);
  const std::uint64_t size = std::clamp<std::uint64_t>(each, kernels::kLeafBytes, most);
  return {buffer_bytes, size, size, true, whole_leaves};
}

std::uint64_t largest_granule(const SavePlan& plan) {
  std::uint64_t largest = 1;
  for (const SavePlan::File& file : plan.files) {
    for (const SavePlan::Item& item : file.items) {
      const Tensor& tensor = item.tensor;
      const bool is_gathered = tensor.nbytes() != 0 && tensor.is_contiguous() && !tensor.is_mapped();
      if (is_gathered && !tensor.storage()->is_sequential())
        largest = std::max(largest, std::min(tensor.storage()->granule(), tensor.nbytes()));
    }
  }
  return largest;
}

std::vector<Job> make_jobs(const SavePlan::File& file, const JobSizes& sizes, std::span<const ByteRange> written) {
  JobMaker maker(sizes);
  for (std::size_t i = 0; i < file.items.size(); ++i)
    maker.add(file.items[i], i, written.empty() ? ByteRange{} : written[i]);
  return maker.finish();
}

}  // namespace ballast
