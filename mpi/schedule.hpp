// Schedule: which rank reads which bytes, and where they go from there. It is made of the plan alone, without a
// message: every rank makes the same schedule. Nothing is planned here that plan_ranks() has planned.
//
// Every byte that some rank needs is read by one rank. A rank reads what it alone needs, if that is worth a read of its
// own; everything else is dealt out in the order of the files, so that all ranks read about as many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ballast/rank_plan.hpp>

#include "extents.hpp"

namespace ballast::mpi {

// What a rank wants of its part of a tensor.
enum class Need : std::uint8_t {
  none,
  copy,  // bytes of its own
  view,  // bytes that other ranks of the node may read, too
};

// The parts of a job that decide who reads what.
struct Demand {
  const RankPlan& plan;
  const Extents& extents;
  std::vector<std::vector<Need>> needs;  // by rank and by tensor, as in the plan
  std::vector<unsigned> node_of;         // by rank
  std::vector<unsigned> readers;         // the ranks that read, ascending; only these need anything
};

// A part of a tensor as runs of bytes in it: run number i begins at byte i * row + begin.
struct PartForm {
  std::uint64_t runs = 1, row = 0, begin = 0, size = 0;

  // How many bytes of the part lie before a byte of the tensor.
  std::uint64_t before(std::uint64_t byte) const;
  bool is_one_run() const noexcept { return runs == 1; }
};
PartForm form_of(const RankedTensor& tensor, const RankPart& part);

// For each tensor the first one that is the same bytes, cut in the same way: these are received once.
std::vector<std::size_t> same_tensors(const RankPlan& plan, const Extents& extents);

// A place that a part has to reach: the memory of one rank, or memory that the ranks of a node share.
struct Target {
  std::size_t tensor = 0, part = 0;
  unsigned rank = 0;  // whose memory it is; for shared memory, the first rank of the node that wants the part
  bool is_shared = false;
};

// A range of an extent.
struct ReadItem {
  std::size_t extent = 0;
  std::uint64_t first = 0, size = 0;
  friend bool operator==(const ReadItem&, const ReadItem&) = default;
};

// What one rank reads at a time, sorted: at most as many bytes as a buffer holds.
using ReadPiece = std::vector<ReadItem>;

struct Schedule {
  std::vector<std::vector<ReadPiece>> pieces;  // by rank; ranks that do not read have none
  std::uint64_t needed = 0;                    // bytes that somebody needs, each counted once
  std::uint64_t read = 0;                      // bytes of all items

  std::uint64_t read_by(unsigned rank) const;
  std::size_t rounds() const;  // the most pieces of a rank
};

// Without cutting a granule, even if it is larger than `piece_bytes`, unless it is everything that can only be read in
// order, or a strided tensor: then one rank reads all of its pieces.
Schedule make_schedule(const Demand& demand, std::uint64_t piece_bytes);

// Where the bytes of the parts have to go.
class Targets {
 public:
  explicit Targets(const Demand& demand);

  // All places that a part has to reach.
  void of_part(std::size_t tensor, std::size_t part, const std::function<void(const Target&)>& visit) const;

  // The rank that `reader` sends the bytes for a target to; the reader itself if it can write to the target.
  unsigned receiver(const Target& target, unsigned reader) const;

  const std::vector<unsigned>& ranks_of_node(unsigned node) const { return nodes_[node]; }

 private:
  const Demand& demand_;
  std::vector<std::vector<unsigned>> nodes_;  // the readers of each node
};

// The bytes of one item that go to one target: those of the tensor from `first` on, up to `end`.
struct Delivery {
  Target target;
  unsigned receiver = 0;
  std::uint64_t first = 0, end = 0;  // bytes of the tensor
  std::uint64_t item_offset = 0;     // of byte `first`, from the beginning of the item
};

// Finds the tensors that lie in a range of an extent.
class TensorIndex {
 public:
  explicit TensorIndex(const Demand& demand);
  // In a fixed order, the same on every rank.
  void visit(const ReadItem& item, const std::function<void(std::size_t tensor)>& look) const;

 private:
  struct Entry {
    std::uint64_t first, end;
    std::uint64_t reach;  // the largest end so far
    std::size_t tensor;
  };
  std::vector<std::vector<Entry>> by_extent_;  // sorted by the first byte
};

// Everything that has to be done with an item that `reader` has read, in a fixed order.
void for_each_delivery(const Demand& demand, const Targets& targets, const TensorIndex& index, unsigned reader,
                       const ReadItem& item, const std::function<void(const Delivery&)>& visit);

}  // namespace ballast::mpi
