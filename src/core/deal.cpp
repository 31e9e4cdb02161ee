#include "core/deal.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace ballast {
namespace {

std::vector<unsigned> owners_of(std::span<const std::uint64_t> item_bytes, std::vector<std::uint64_t>& loads) {
  std::vector<std::size_t> order(item_bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t item) { return item_bytes[item]; });

  using Member = std::pair<std::uint64_t, unsigned>;  // its bytes, its rank
  std::priority_queue<Member, std::vector<Member>, std::greater<>> members;
  for (unsigned rank = 0; rank < loads.size(); ++rank) members.emplace(loads[rank], rank);
  std::vector<unsigned> owners(item_bytes.size());
  for (const std::size_t item : order) {
    const auto [bytes, rank] = members.top();
    members.pop();
    owners[item] = rank;
    loads[rank] = bytes + item_bytes[item];
    members.emplace(loads[rank], rank);
  }
  return owners;
}

}  // namespace

Deal::Deal(Team& team, std::span<const std::uint64_t> item_bytes, std::vector<std::uint64_t>& loads) : team_(team) {
  loads.resize(team.size());
  if (team.size() != 1) owners_ = owners_of(item_bytes, loads);
  for (std::size_t item = 0; item < item_bytes.size(); ++item) {
    if (!is_mine(item)) continue;
    mine_.push_back(item);
    my_bytes_ += item_bytes[item];
  }
}

void add_up(Team& team, std::span<std::uint64_t> counts) {
  if (team.size() == 1) return;
  const auto messages = team.exchange(bytes_of(counts));
  std::vector<std::uint64_t> others(counts.size());
  for (unsigned rank = 0; rank < messages.size(); ++rank) {
    if (rank == team.rank()) continue;
    Cursor in(messages[rank]);
    read_values(in, std::span(others));
    std::ranges::transform(counts, others, counts.begin(), std::plus());
  }
}

std::uint64_t least_of(Team& team, std::uint64_t mine) {
  std::uint64_t least = mine;
  for (const auto& message : team.exchange(Message().number(mine)))
    least = std::min(least, Cursor(message).u64("number"));
  return least;
}

}  // namespace ballast
