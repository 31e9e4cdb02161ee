#include "tensor/derived_storage.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <functional>
#include <utility>

#include <ballast/error.hpp>

#include "core/overflow_counter.hpp"
#include "core/scratch.hpp"
#include "core/wanted.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kStepBytes = 64 << 10;  // bytes of the source: fit into the L2 cache with their result
constexpr std::uint64_t kBatchBytes = 1 << 20;  // bytes of the source that are read at once for small ranges

}  // namespace

bool DerivedStorage::is_sequential() const {
  return std::ranges::any_of(from_, [](const Tensor& t) { return t.storage() && t.storage()->is_sequential(); });
}

bool DerivedStorage::has_data() const {
  return std::ranges::all_of(from_, [](const Tensor& t) { return t.has_data(); });
}

Storage::Derivation DerivedStorage::derivation() const {
  Derivation derivation{step_, {}};
  for (const Tensor& tensor : from_) derivation.from.push_back(&tensor);
  return derivation;
}

void DerivedStorage::prepare(const Progress& progress) const {
  for (const Tensor& tensor : from_) {
    if (tensor.storage()) tensor.storage()->prepare(progress);
  }
}

void DerivedStorage::check_unchanged() const {
  for (const Tensor& tensor : from_) {
    if (tensor.storage()) tensor.storage()->check_unchanged();
  }
}

BlockwiseStorage::BlockwiseStorage(std::vector<Tensor> from, std::string step, std::size_t in_block,
                                   std::size_t out_block, Making making)
    : DerivedStorage(std::move(from), std::move(step)), in_block_(in_block), out_block_(out_block), making_(making) {
  assert(in_block_ != 0 && source().nbytes() % in_block_ == 0);
  assert(making_ != Making::in_place || (in_block_ == out_block_ && in_block_ <= kSmallBlock));
}

std::uint64_t BlockwiseStorage::granule() const {
  if (!source().storage() || !source().is_contiguous()) return out_block_;
  return std::max<std::uint64_t>((source().storage()->granule() + in_block_ - 1) / in_block_, 1) * out_block_;
}

ByteRange BlockwiseStorage::needed(ByteRange range) const {
  const std::uint64_t first = range.offset / out_block_,
                      end = (range.offset + range.size + out_block_ - 1) / out_block_;
  return {first * in_block_, (end - first) * in_block_};
}

void BlockwiseStorage::prefetch(std::span<const ByteRange> ranges) const {
  std::vector<ByteRange> wanted;
  wanted.reserve(ranges.size());
  for (const ByteRange& range : ranges) wanted.push_back(needed(range));
  source().prefetch(wanted);
}

// Releases whole blocks only: a block that the range cuts may still be needed for the rest of it.
void BlockwiseStorage::release(std::uint64_t offset, std::uint64_t size) const {
  source().release({offset / out_block_ * in_block_, size / out_block_ * in_block_});
}

void BlockwiseStorage::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;
  if (making_ == Making::in_place) return count_overflows(read_in_place(offset, out));
  Overflows overflows;
  const auto look = [&](std::span<const std::byte> in) { overflows = place(offset, in, out); };
  const ByteRange range = needed({offset, out.size()});
  const bool is_made = making_ == Making::from_map && source().is_contiguous() &&
                       source().storage()->visit(source().offset() + range.offset, range.size, std::ref(look));
  count_overflows(is_made ? overflows : read_in_steps(offset, out));
}

// Reads small ranges together.
void BlockwiseStorage::read_many(std::span<const Range> ranges) const {
  std::uint64_t total = 0;
  std::vector<Range> batch;
  for (const Range& range : ranges) {
    const std::uint64_t size = needed({range.offset, range.out.size()}).size;
    if (size > kStepBytes || making_ == Making::in_place) {
      read(range.offset, range.out);
      continue;
    }
    if (total + size > kBatchBytes) {
      read_batch(batch, total);
      batch.clear();
      total = 0;
    }
    batch.push_back(range);
    total += size;
  }
  read_batch(batch, total);
}

void BlockwiseStorage::read_batch(std::span<const Range> ranges, std::uint64_t total) const {
  const Scratch buffer(static_cast<std::size_t>(total));
  std::vector<Range> wanted;
  auto rest = buffer.bytes();
  for (const Range& range : ranges) {
    const ByteRange blocks = needed({range.offset, range.out.size()});
    wanted.push_back({blocks.offset, rest.first(static_cast<std::size_t>(blocks.size))});
    rest = rest.subspan(static_cast<std::size_t>(blocks.size));
  }
  source().read_many(wanted);
  Overflows overflows;
  for (std::size_t i = 0; i < ranges.size(); ++i) overflows.add(place(ranges[i].offset, wanted[i].out, ranges[i].out));
  count_overflows(overflows);
}

// Makes the bytes of the result from `offset` on; `in` has the blocks for them. The range may cut the first and the
// last block: these are made in a buffer. The overflows of a block are counted by whoever reads its first byte.
Overflows BlockwiseStorage::place(std::uint64_t offset, std::span<const std::byte> in, std::span<std::byte> out) const {
  Overflows overflows;
  std::uint64_t block = offset / out_block_;
  const auto make_part = [&](std::size_t skip, std::size_t size) {
    std::array<std::byte, kSmallBlock> small;
    std::vector<std::byte> large(out_block_ > kSmallBlock ? out_block_ : 0);
    const auto whole = large.empty() ? std::span(small).first(out_block_) : std::span(large);
    const Overflows found = make(block, in.first(in_block_), whole);
    if (skip == 0) overflows.add(found);
    std::memcpy(out.data(), whole.data() + skip, size);
    in = in.subspan(in_block_);
    out = out.subspan(size);
    ++block;
  };
  if (const auto skip = static_cast<std::size_t>(offset % out_block_); skip != 0 && !out.empty())
    make_part(skip, std::min(out_block_ - skip, out.size()));
  const std::size_t count = out.size() / out_block_;
  if (count != 0) overflows.add(make(block, in.first(count * in_block_), out.first(count * out_block_)));
  in = in.subspan(count * in_block_);
  out = out.subspan(count * out_block_);
  block += count;
  if (!out.empty()) make_part(0, out.size());
  return overflows;
}

Overflows BlockwiseStorage::read_in_steps(std::uint64_t offset, std::span<std::byte> out) const {
  Overflows overflows;
  const ByteRange range = needed({offset, out.size()});
  const std::uint64_t worth = std::max(kStepBytes, source().storage()->granule());
  const std::uint64_t step = std::min(std::max<std::uint64_t>(worth / in_block_, 1) * in_block_, range.size);
  const Scratch buffer(static_cast<std::size_t>(step));
  for (std::uint64_t done = 0; done < range.size; done += step) {
    if (!is_wanted()) throw Error(Errc::cancelled, "cancelled");  // a range may take seconds to be encoded
    const auto in = buffer.bytes().first(static_cast<std::size_t>(std::min(step, range.size - done)));
    source().read(range.offset + done, in);
    const std::uint64_t first = (range.offset + done) / in_block_ * out_block_;
    const std::uint64_t begin = std::max(first, offset);
    const std::uint64_t end = std::min(first + in.size() / in_block_ * out_block_, offset + out.size());
    overflows.add(place(begin, in, out.subspan(begin - offset, end - begin)));
  }
  return overflows;
}

// Makes whole blocks directly in `out`, and the blocks that the range cuts in a buffer.
Overflows BlockwiseStorage::read_in_place(std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t first = (offset + out_block_ - 1) / out_block_ * out_block_;
  const std::uint64_t last = (offset + out.size()) / out_block_ * out_block_;
  Overflows overflows;
  const auto read_edge = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    std::array<std::byte, kSmallBlock> buffer;
    const auto block = std::span(buffer).first(in_block_);
    source().read(begin / out_block_ * in_block_, block);
    const Overflows found = make(begin / out_block_, block, block);
    if (begin % out_block_ == 0) overflows.add(found);
    std::memcpy(out.data() + (begin - offset), block.data() + begin % out_block_, end - begin);
  };
  if (first > last) {  // the range lies inside one block
    read_edge(offset, offset + out.size());
    return overflows;
  }
  read_edge(offset, first);
  if (first < last) {
    const auto blocks = out.subspan(first - offset, last - first);
    source().read(first, blocks);
    overflows.add(make(first / out_block_, blocks, blocks));
  }
  read_edge(last, offset + out.size());
  return overflows;
}

}  // namespace ballast
