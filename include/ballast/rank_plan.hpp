// RankPlan: which part of which tensor each rank of a parallel model needs, and where those bytes lie.
//
// Plans are deterministic: every process that plans the same checkpoint gets the same plan. A plan is a value that owns
// everything in it; several threads may read one while nobody changes it. The functions may be called from several
// threads at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

enum class RankSplit : std::uint8_t {
  replicated,  // every rank has all of it
  rows,        // cut along the first dimension
  columns,     // cut along the last dimension; a tensor with one dimension is replicated
  expert,      // whole tensors, dealt out by the number {n} in their names; without one, cut along the first dimension
};
std::string_view name(RankSplit split) noexcept;

struct RankRule {
  std::string match;  // * and ? as in a shell; {n} is the number of an expert
  RankSplit split = RankSplit::replicated;
  std::uint64_t unit = 1;  // so many indices of the dimension stay together: the rows of a head
};

// {"rules": [{"match": "*.q_proj.weight", "split": "rows", "unit": 128}, ...]}; the first rule that matches counts.
std::vector<RankRule> parse_rank_rules(std::string_view json);
std::vector<RankRule> load_rank_rules(const std::string& path);

// `count` pieces of `size` bytes each, `stride` bytes apart.
struct FileRange {
  std::string file;  // as it was opened
  std::uint64_t offset = 0, size = 0;
  std::uint64_t count = 1, stride = 0;
};

// A range of one dimension.
struct RankCut {
  std::size_t axis = 0;
  std::uint64_t first = 0, count = 0;
  friend bool operator==(const RankCut&, const RankCut&) = default;
};

struct RankPart {
  std::vector<unsigned> ranks;  // the ranks that need it
  std::optional<RankCut> cut;   // empty: all of the tensor
  Shape shape;
  std::uint64_t bytes = 0;        // of the part itself
  std::vector<FileRange> ranges;  // the bytes that must be read for it, in order
};

struct RankedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  RankSplit split = RankSplit::replicated;
  bool is_plain = true;  // false: compressed or computed, so the ranges cover everything that it is made of
  std::vector<RankPart> parts;
};

// What one rank needs, by name.
using RankSlice = std::map<std::string, std::optional<RankCut>, std::less<>>;

struct RankPlan {
  unsigned ranks = 1;
  std::vector<RankedTensor> tensors;  // in the order of the checkpoint
  std::vector<std::string> unused{};  // `match` of each rule that is the first to match for no tensor

  RankSlice rank(unsigned rank) const;               // throws Errc::invalid_argument if there is no such rank
  std::uint64_t bytes_of_rank(unsigned rank) const;  // in memory
};

// A dimension that is not a multiple of the ranks is cut as evenly as `unit` and the blocks of the dtype allow.
RankPlan plan_ranks(const Checkpoint& checkpoint, unsigned ranks, const std::vector<RankRule>& rules);

// The parts that a rank needs, as views; the other tensors are left out. Throws Errc::not_found if the slice names a
// tensor that is not there.
Checkpoint take_slice(Checkpoint checkpoint, const RankSlice& slice);

}  // namespace ballast
