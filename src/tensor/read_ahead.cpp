#include "tensor/read_ahead.hpp"

#include <algorithm>

namespace ballast {
namespace {

constexpr std::uint64_t kAheadBytes = std::uint64_t{32} << 20;

}  // namespace

void Announcement::add(const Tensor& tensor, ByteRange range) {
  bytes_ += range.size;
  if (!tensor.storage()) return;
  if (tensor.is_contiguous())
    ranges_[tensor.storage().get()].push_back({tensor.offset() + range.offset, range.size});
  else
    tensor.prefetch(std::span(&range, 1));
}

void Announcement::make() {
  for (const auto& [storage, ranges] : ranges_) storage->prefetch(ranges);
  ranges_.clear();
}

void ReadAhead::begin(std::size_t job) {
  const std::lock_guard lock(mutex_);
  next_ = std::max(next_, job);
  Announcement reads;
  while (next_ < sizes_.size() && (next_ == job || waiting_bytes_ < kAheadBytes)) {
    const std::uint64_t before = reads.bytes();
    describe_(next_, reads);
    sizes_[next_] = reads.bytes() - before;
    waiting_bytes_ += sizes_[next_++];
  }
  waiting_bytes_ -= sizes_[job];
  reads.make();
}

}  // namespace ballast
