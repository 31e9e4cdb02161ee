#include <algorithm>
#include <utility>

#include "schedule.hpp"

namespace ballast::mpi {

Targets::Targets(const Demand& demand) : demand_(demand) {
  for (const unsigned reader : demand.readers) {
    const unsigned node = demand.node_of[reader];
    if (node >= nodes_.size()) nodes_.resize(node + 1);
    nodes_[node].push_back(reader);
  }
}

void Targets::of_part(std::size_t tensor, std::size_t part, const std::function<void(const Target&)>& visit) const {
  const std::vector<unsigned>& ranks = demand_.plan.tensors[tensor].parts[part].ranks;
  const auto wants = [&](unsigned rank, Need need) { return demand_.needs[rank][tensor] == need; };
  const auto shares = [&](unsigned a, unsigned b) {
    return demand_.node_of[a] == demand_.node_of[b] && wants(a, Need::view) && wants(b, Need::view);
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const unsigned rank = ranks[i];
    if (wants(rank, Need::none)) continue;
    bool is_shared = false, is_first = true;
    if (wants(rank, Need::view)) {
      // The ranks of a node follow each other in most jobs, so whoever shares with this rank is found at once.
      for (std::size_t k = i; k-- > 0 && is_first;) is_first = !shares(ranks[k], rank);
      for (std::size_t k = i + 1; is_first && !is_shared && k < ranks.size(); ++k) is_shared = shares(ranks[k], rank);
    }
    if (is_first) visit({tensor, part, rank, is_shared});
  }
}

unsigned Targets::receiver(const Target& target, unsigned reader) const {
  if (!target.is_shared) return target.rank;
  const unsigned node = demand_.node_of[target.rank];
  if (demand_.node_of[reader] == node) return reader;
  const std::vector<unsigned>& ranks = nodes_[node];
  return ranks[reader % ranks.size()];
}

TensorIndex::TensorIndex(const Demand& demand) : by_extent_(demand.extents.all.size()) {
  for (std::size_t tensor = 0; tensor < demand.extents.tensors.size(); ++tensor) {
    const TensorPlace& place = demand.extents.tensors[tensor];
    if (place.bytes != 0) by_extent_[place.extent].push_back({place.first, place.first + place.bytes, 0, tensor});
  }
  for (auto& entries : by_extent_) {
    std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.first, entry.tensor); });
    std::uint64_t reach = 0;
    for (Entry& entry : entries) entry.reach = reach = std::max(reach, entry.end);
  }
}

void TensorIndex::visit(const ReadItem& item, const std::function<void(std::size_t tensor)>& look) const {
  const std::vector<Entry>& entries = by_extent_[item.extent];
  // The first entry that any entry up to it reaches into the item.
  auto entry = std::ranges::upper_bound(entries, item.first, {}, &Entry::reach);
  for (; entry != entries.end() && entry->first < item.first + item.size; ++entry) {
    if (entry->end > item.first) look(entry->tensor);
  }
}

void for_each_delivery(const Demand& demand, const Targets& targets, const TensorIndex& index, unsigned reader,
                       const ReadItem& item, const std::function<void(const Delivery&)>& visit) {
  index.visit(item, [&](std::size_t tensor) {
    const TensorPlace& place = demand.extents.tensors[tensor];
    const std::uint64_t first = std::max(item.first, place.first) - place.first;
    const std::uint64_t end = std::min(item.first + item.size, place.first + place.bytes) - place.first;
    const RankedTensor& planned = demand.plan.tensors[tensor];
    for (std::size_t part = 0; part < planned.parts.size(); ++part) {
      const PartForm form = form_of(planned, planned.parts[part]);
      if (form.before(first) == form.before(end)) continue;
      targets.of_part(tensor, part, [&](const Target& target) {
        visit({target, targets.receiver(target, reader), first, end, place.first + first - item.first});
      });
    }
  });
}

}  // namespace ballast::mpi
