#include <ballast/error.hpp>
#include <ballast/rank_plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/text.hpp"
#include "layout/dimension_range.hpp"
#include "layout/file_ranges.hpp"
#include "layout/pattern.hpp"
#include "tensor/checkpoint_parts.hpp"

namespace ballast {
namespace {

constexpr unsigned kMostRanks = 65536;
constexpr const char* kNumber = "n";

struct CompiledRule {
  NamePattern pattern;
  const RankRule* rule;
  bool is_numbered;  // by the expert in the name
  bool is_used = false;
};

Tensor part_of(const Tensor& tensor, const std::optional<RankCut>& cut) {
  return cut ? dimension_range(tensor, cut->axis, cut->first, cut->count) : tensor;
}

// The first of `total` units that belongs to a rank; ranks get as equal shares as whole units allow.
std::uint64_t first_of(unsigned rank, unsigned ranks, std::uint64_t total) {
  const std::uint64_t share = total / ranks, more = total % ranks;
  return share * rank + std::min<std::uint64_t>(rank, more);
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, unsigned ranks, const std::vector<RankRule>& rules)
      : checkpoint_(checkpoint), ranks_(ranks) {
    for (const RankRule& rule : rules) {
      const bool is_numbered = rule.split == RankSplit::expert && places_in(rule.match).contains(kNumber);
      rules_.push_back({NamePattern(rule.match, {kNumber}, NamePattern::Wildcards::yes), &rule, is_numbered, false});
    }
  }

  RankPlan run() {
    RankPlan plan{ranks_, {}, {}};
    plan.tensors.reserve(checkpoint_.size());
    count_experts();
    for (const auto& [name, tensor] : checkpoint_) plan.tensors.push_back(planned(name, tensor));
    for (const CompiledRule& rule : rules_) {
      if (!rule.is_used) plan.unused.push_back(rule.rule->match);
    }
    return plan;
  }

 private:
  struct Found {
    const CompiledRule* rule = nullptr;
    std::size_t number = 0;  // the number of the rule
    NamePattern::Places places;
  };

  Found find(std::string_view name) const {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (auto places = rules_[i].pattern.match(name)) return {&rules_[i], i, std::move(*places)};
    }
    return {};
  }

  // Experts are counted over all tensors of a rule, so that all layers are dealt out alike.
  void count_experts() {
    for (const auto& [name, tensor] : checkpoint_) {
      const Found found = find(name);
      if (found.rule == nullptr || !found.rule->is_numbered) continue;
      std::uint64_t& count = expert_counts_[found.number];
      count = std::max<std::uint64_t>(count, std::stoull(found.places.at(kNumber)) + 1);
    }
  }

  RankedTensor planned(std::string_view name, const Tensor& tensor) {
    const Found found = find(name);
    RankedTensor result{std::string(name), tensor.dtype(), tensor.shape(), RankSplit::replicated, true, {}};
    if (found.rule == nullptr) {
      add_part(result, tensor, all_ranks(), std::nullopt);
      return result;
    }
    rules_[found.number].is_used = true;
    const RankRule& rule = *found.rule->rule;
    if (found.rule->is_numbered) {
      result.split = RankSplit::expert;
      const std::uint64_t expert = std::stoull(found.places.at(kNumber));
      add_part(result, tensor, {owner_of(expert, expert_counts_.at(found.number))}, std::nullopt);
      return result;
    }
    const bool has_no_columns = rule.split == RankSplit::columns && tensor.rank() < 2;
    if (rule.split == RankSplit::replicated || tensor.rank() == 0 || tensor.numel() == 0 || has_no_columns) {
      add_part(result, tensor, all_ranks(), std::nullopt);
      return result;
    }
    result.split = rule.split;
    cut(result, tensor, rule.split == RankSplit::columns ? tensor.rank() - 1 : 0, rule.unit);
    return result;
  }

  void cut(RankedTensor& result, const Tensor& tensor, std::size_t axis, std::uint64_t unit) const {
    const std::uint64_t dim = tensor.shape()[axis];
    const bool is_last = axis + 1 == tensor.rank();
    const std::uint64_t block = is_last ? info(tensor.dtype()).block_elements : 1;
    const std::uint64_t step = unit > dim ? unit : std::lcm(unit, block);
    // The rest goes to the last rank. NOLINTNEXTLINE(clang-analyzer-core.DivideZero): no unit is 0
    const std::uint64_t units = dim / step;
    for (unsigned rank = 0; rank < ranks_; ++rank) {
      const std::uint64_t first = first_of(rank, ranks_, units) * step;
      const std::uint64_t end = rank + 1 == ranks_ ? dim : first_of(rank + 1, ranks_, units) * step;
      add_part(result, tensor, {rank}, RankCut{axis, first, end - first});
    }
  }

  unsigned owner_of(std::uint64_t expert, std::uint64_t count) const {
    unsigned rank = 0;
    while (rank + 1 < ranks_ && first_of(rank + 1, ranks_, count) <= expert) ++rank;
    return rank;
  }

  std::vector<unsigned> all_ranks() const {
    std::vector<unsigned> ranks(ranks_);
    std::iota(ranks.begin(), ranks.end(), 0u);
    return ranks;
  }

  static void add_part(RankedTensor& result, const Tensor& tensor, std::vector<unsigned> ranks,
                       std::optional<RankCut> cut) {
    const Tensor part = part_of(tensor, cut);
    FileRanges found = file_ranges(part);
    result.is_plain = result.is_plain && found.is_plain;
    result.parts.push_back({std::move(ranks), cut, part.shape(), part.nbytes(), std::move(found.ranges)});
  }

  const Checkpoint& checkpoint_;
  unsigned ranks_;
  std::vector<CompiledRule> rules_;
  std::map<std::size_t, std::uint64_t> expert_counts_;  // by the number of the rule
};

}  // namespace

RankPlan plan_ranks(const Checkpoint& checkpoint, unsigned ranks, const std::vector<RankRule>& rules) {
  if (ranks == 0 || ranks > kMostRanks)
    throw Error(Errc::invalid_argument, fmt::format("there can be 1 to {} ranks, not {}", kMostRanks, ranks));
  for (const RankRule& rule : rules)
    if (rule.unit == 0) throw Error(Errc::invalid_argument, "the unit of a rule is at least 1");
  return Planner(checkpoint, ranks, rules).run();
}

RankSlice RankPlan::rank(unsigned rank) const {
  if (rank >= ranks) {
    throw Error(Errc::invalid_argument, fmt::format("there is no rank {}", rank))
        .hint(fmt::format("the plan has {}, counted from 0", ranks));
  }
  RankSlice slice;
  for (const RankedTensor& tensor : tensors) {
    for (const RankPart& part : tensor.parts) {
      if (std::ranges::count(part.ranks, rank) != 0) slice.emplace(tensor.name, part.cut);
    }
  }
  return slice;
}

std::uint64_t RankPlan::bytes_of_rank(unsigned rank) const {
  std::uint64_t bytes = 0;
  for (const RankedTensor& tensor : tensors) {
    for (const RankPart& part : tensor.parts) {
      if (std::ranges::count(part.ranks, rank) != 0) bytes += part.bytes;
    }
  }
  return bytes;
}

Checkpoint take_slice(Checkpoint checkpoint, const RankSlice& slice) {
  StateDict tensors;
  for (const auto& [name, tensor] : checkpoint) {
    const auto part = slice.find(name);
    if (part != slice.end()) tensors.insert(name, part_of(tensor, part->second));
  }
  if (tensors.size() != slice.size()) {
    for (const auto& [name, cut] : slice) {
      if (!checkpoint.contains(name))
        throw Error(Errc::not_found, "the plan has tensor " + quote(name) + ", which is not there")
            .about(name)
            .hint("make the plan of this checkpoint");
    }
  }
  const auto is_whole = [&](std::string_view name) {
    const Tensor *now = tensors.find(name), *then = checkpoint.find(name);
    return now != nullptr && then != nullptr && now->shape() == then->shape();
  };
  replace_tensors(checkpoint, tensors, is_whole);
  return checkpoint;
}

}  // namespace ballast
