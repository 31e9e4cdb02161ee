#include <ballast/error.hpp>
#include <ballast/mpi.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "extents.hpp"
#include "piece_bytes.hpp"
#include "schedule.hpp"

namespace ballast::mpi {
namespace {

// Ranks that want everything, on nodes that are filled one after the other.
Demand demand_of_all(const RankPlan& plan, const Extents& extents, unsigned ranks_per_node, bool share) {
  Demand demand{plan, extents, {}, {}, {}};
  const Need need = share ? Need::view : Need::copy;
  std::vector<Need> needs(plan.tensors.size());
  for (std::size_t i = 0; i < needs.size(); ++i) needs[i] = extents.tensors[i].bytes != 0 ? need : Need::none;
  const std::vector<std::size_t> same = same_tensors(plan, extents);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (same[i] != i) needs[i] = Need::none;
  }
  demand.needs.assign(plan.ranks, needs);
  for (unsigned rank = 0; rank < plan.ranks; ++rank) demand.node_of.push_back(rank / ranks_per_node * ranks_per_node);
  return demand;
}

// Adds what the readers of the demand do to their traffic.
void add_traffic(const Demand& demand, const Schedule& schedule, std::vector<RankTraffic>& ranks) {
  const Targets targets(demand);
  const TensorIndex index(demand);
  for (const unsigned reader : demand.readers) {
    ranks[reader].read += schedule.read_by(reader);
    for (const ReadPiece& piece : schedule.pieces[reader]) {
      for (const ReadItem& item : piece) {
        for_each_delivery(demand, targets, index, reader, item, [&](const Delivery& delivery) {
          const RankedTensor& tensor = demand.plan.tensors[delivery.target.tensor];
          const PartForm form = form_of(tensor, tensor.parts[delivery.target.part]);
          const std::uint64_t bytes = form.before(delivery.end) - form.before(delivery.first);
          ranks[delivery.target.rank].held += bytes;
          if (delivery.receiver == reader) return;
          ranks[reader].sent += bytes;
          ranks[delivery.receiver].received += bytes;
        });
      }
    }
  }
}

}  // namespace

RankReport planned_traffic(const Checkpoint& checkpoint, unsigned ranks, const std::vector<RankRule>& rules,
                           unsigned ranks_per_node, const LoadOptions& options) {
  if (ranks_per_node == 0) throw Error(Errc::invalid_argument, "a node has at least one rank");
  const auto start = std::chrono::steady_clock::now();
  const RankPlan plan = plan_ranks(checkpoint, ranks, rules);
  const Extents extents = extents_of(checkpoint);
  Demand demand = demand_of_all(plan, extents, ranks_per_node, options.share);
  RankReport report;
  report.ranks.resize(ranks);
  const auto needs = demand.needs;
  const unsigned together = options.read_once == ReadOnce::node ? ranks_per_node : ranks;
  for (unsigned first = 0; first < ranks; first += together) {
    demand.readers.resize(std::min(together, ranks - first));
    std::iota(demand.readers.begin(), demand.readers.end(), first);
    for (unsigned rank = 0; rank < ranks; ++rank) {
      const bool is_here = rank >= first && rank - first < together;
      demand.needs[rank] = is_here ? needs[rank] : std::vector<Need>(plan.tensors.size(), Need::none);
    }
    const Schedule schedule = make_schedule(demand, piece_bytes(options.memory_bytes));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    report.seconds = elapsed.count();
    add_traffic(demand, schedule, report.ranks);
  }
  return report;
}

}  // namespace ballast::mpi
