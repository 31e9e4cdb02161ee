#include "save/digests.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/deal.hpp"
#include "core/text.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kPieceLeaves = 16;
constexpr std::uint64_t kHashedPieceBytes = kPieceLeaves * kernels::kLeafBytes;

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
  kernels::hash_leaves(bytes, leaves(item, first, bytes.size()));
}

std::span<std::uint64_t> Digests::leaves(std::size_t item, std::uint64_t first, std::uint64_t size) noexcept {
  return std::span(leaves_[item]).subspan(first / kernels::kLeafBytes, kernels::leaf_count(size));
}

std::uint64_t Digests::of(std::size_t item) const noexcept { return kernels::join_leaves(leaves_[item]); }

void Digests::compare(const io::Sink& sink, Team& team, ThreadPool& pool, ProgressMeter& meter) const {
  struct Piece {
    std::size_t item;
    ByteRange range;
  };
  std::vector<Piece> pieces;
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < file_.items.size(); ++i) {
    for (const ByteRange& range :
         split_by_bytes(file_.items[i].tensor.nbytes(), kernels::kLeafBytes, kHashedPieceBytes)) {
      pieces.push_back({i, range});
      sizes.push_back(range.size);
    }
  }
  const Deal deal(team, sizes);
  pool.run(deal.mine().size(), [&](std::size_t i, unsigned) {
    const Piece& piece = pieces[deal.mine()[i]];
    compare_piece(sink, piece.item, piece.range);
    meter.add(piece.range.size);
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

std::uint64_t digest_of(const io::Sink& sink, std::uint64_t size_bytes, Team& team, ThreadPool& pool,
                        ProgressMeter* meter) {
  const auto pieces = split_by_bytes(size_bytes, kernels::kLeafBytes, kHashedPieceBytes);
  std::vector<std::uint64_t> sizes;
  for (const ByteRange& piece : pieces) sizes.push_back(piece.size);
  const Deal deal(team, sizes);
  std::vector<std::array<std::uint64_t, kPieceLeaves>> leaves(std::max<std::size_t>(pieces.size(), 1));
  if (size_bytes == 0) kernels::hash_leaves({}, std::span(leaves[0]).first(1));
  pool.run(deal.mine().size(), [&](std::size_t i, unsigned) {
    const std::size_t piece = deal.mine()[i];
    std::vector<std::byte> bytes(pieces[piece].size);
    sink.read_back(pieces[piece].offset, bytes);
    kernels::hash_leaves(bytes, std::span(leaves[piece]).first(kernels::leaf_count(bytes.size())));
    if (meter != nullptr) meter->add(bytes.size());
  });
  deal.share(std::span(leaves));
  return kernels::join_leaves(std::span(leaves[0].data(), kernels::leaf_count(size_bytes)));
}

}  // namespace ballast
