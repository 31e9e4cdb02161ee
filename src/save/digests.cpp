#include "save/digests.hpp"

#include <ballast/error.hpp>

#include <fmt/format.h>

#include "core/text.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kHashedPieceBytes = 16 * kernels::kLeafBytes;

}  // namespace

Digests::Digests(const SavePlan::File& file) : file_(file) {
  leaves_.reserve(file.items.size());
  for (const SavePlan::Item& item : file.items) {
    const std::uint64_t size = item.tensor.nbytes();
    leaves_.emplace_back(kernels::leaf_count(size));
    if (size == 0) kernels::hash_leaves({}, leaves_.back());
  }
}

void Digests::take(std::size_t item, std::uint64_t first, std::span<const std::byte> bytes) noexcept {
  kernels::hash_leaves(
      bytes, std::span(leaves_[item]).subspan(first / kernels::kLeafBytes, kernels::leaf_count(bytes.size())));
}

std::uint64_t Digests::of(std::size_t item) const noexcept { return kernels::join_leaves(leaves_[item]); }

void Digests::compare(const io::Sink& sink, ThreadPool& pool, ProgressMeter& meter) const {
  struct Piece {
    std::size_t item;
    ByteRange range;
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < file_.items.size(); ++i) {
    for (const ByteRange& range :
         split_by_bytes(file_.items[i].tensor.nbytes(), kernels::kLeafBytes, kHashedPieceBytes))
      pieces.push_back({i, range});
  }
  pool.run(pieces.size(), [&](std::size_t i, unsigned) {
    compare_piece(sink, pieces[i].item, pieces[i].range);
    meter.add(pieces[i].range.size);
  });
}

void Digests::compare_piece(const io::Sink& sink, std::size_t number, ByteRange range) const {
  const SavePlan::Item& item = file_.items[number];
  std::vector<std::byte> bytes(range.size);
  sink.read_back(item.offset + range.offset, bytes);
  std::vector<std::uint64_t> found(kernels::leaf_count(range.size));
  kernels::hash_leaves(bytes, found);
  const std::size_t first = range.offset / kernels::kLeafBytes;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == leaves_[number][first + i]) continue;
    throw Error(Errc::io, fmt::format("tensor {} does not come back as it was written", quote(item.name)))
        .in(file_.path)
        .at_byte(item.offset + range.offset + i * kernels::kLeafBytes)
        .hint("the disk or the memory of this machine is failing; nothing was replaced");
  }
}

std::uint64_t digest_of(const io::Sink& sink, std::uint64_t size_bytes, ThreadPool& pool, ProgressMeter* meter) {
  std::vector<std::uint64_t> leaves(kernels::leaf_count(size_bytes));
  const auto pieces = split_by_bytes(size_bytes, kernels::kLeafBytes, kHashedPieceBytes);
  pool.run(pieces.size(), [&](std::size_t i, unsigned) {
    const auto [offset, size] = pieces[i];
    std::vector<std::byte> bytes(size);
    sink.read_back(offset, bytes);
    kernels::hash_leaves(bytes, std::span(leaves).subspan(offset / kernels::kLeafBytes, kernels::leaf_count(size)));
    if (meter != nullptr) meter->add(size);
  });
  return kernels::join_leaves(leaves);
}

}  // namespace ballast
