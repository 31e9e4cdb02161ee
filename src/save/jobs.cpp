#include "save/jobs.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/thread_pool.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kDirectBytes = 64 * 1024;  // smaller ranges are cheaper to gather than to write alone
constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;  // of a direct range: enough to keep the disk busy

class JobMaker {
 public:
  explicit JobMaker(std::uint64_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  void add(const SavePlan::Item& item, std::size_t number) {
    const Tensor& tensor = item.tensor;
    const std::uint64_t size = tensor.nbytes();
    if (size == 0) return;
    if (tensor.storage()->is_sequential()) {
      Job& stream = streams_.try_emplace(tensor.storage().get(), Job{Job::Kind::streamed, {}}).first->second;
      add_part(stream, {&tensor, 0, size, item.offset, number});
      return;
    }
    const bool in_place = tensor.is_contiguous() && tensor.is_mapped();
    if (in_place && size >= kDirectBytes) {
      for (const ByteRange& range : split_by_bytes(size, 1, kPieceBytes)) {
        jobs_.push_back(
            {Job::Kind::direct, {{&tensor, range.offset, range.size, item.offset + range.offset, number}}, range.size});
      }
      return;
    }
    for (const ByteRange& range : split_by_bytes(size, granule_of(tensor), buffer_bytes_)) {
      gather({&tensor, range.offset, range.size, item.offset + range.offset, number});
    }
  }

  std::vector<Job> finish() {
    flush();
    for (auto& [storage, job] : streams_) {
      std::stable_sort(job.parts.begin(), job.parts.end(),
                       [](const Job::Part& a, const Job::Part& b) { return a.tensor->offset() < b.tensor->offset(); });
      jobs_.push_back(std::move(job));
    }
    // Streams cannot be shared out: the longest begin first, so that none is left to run alone at the end.
    std::stable_sort(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) {
      const auto weight = [](const Job& job) { return job.kind == Job::Kind::streamed ? job.bytes : 0; };
      return weight(a) > weight(b);
    });
    return std::move(jobs_);
  }

 private:
  static void add_part(Job& job, const Job::Part& part) {
    job.parts.push_back(part);
    job.bytes += part.size;
  }

  // What is worth reading, in whole leaves of the item's digest; leaves alone where that is more than a buffer.
  std::uint64_t granule_of(const Tensor& tensor) const {
    const std::uint64_t worth = tensor.is_contiguous() ? tensor.storage()->granule() : 1;
    if (worth > buffer_bytes_) return kernels::kLeafBytes;
    const std::uint64_t both = std::lcm<std::uint64_t>(worth, kernels::kLeafBytes);
    return both <= buffer_bytes_ ? both : kernels::kLeafBytes;
  }

  // Parts share a buffer, so that their storage is asked once, until it is full.
  void gather(const Job::Part& part) {
    if (group_.bytes + part.size > buffer_bytes_) flush();
    add_part(group_, part);
  }

  void flush() {
    if (!group_.parts.empty()) jobs_.push_back(std::exchange(group_, {Job::Kind::gathered, {}}));
  }

  std::uint64_t buffer_bytes_;
  std::vector<Job> jobs_;
  std::map<const Storage*, Job> streams_;
  Job group_{Job::Kind::gathered, {}};
};

}  // namespace

std::vector<Job> make_jobs(const SavePlan::File& file, std::uint64_t buffer_bytes) {
  JobMaker maker(buffer_bytes);
  for (std::size_t i = 0; i < file.items.size(); ++i) maker.add(file.items[i], i);
  return maker.finish();
}

}  // namespace ballast
