#include "schedule.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/text.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace ballast::mpi {
namespace {

constexpr unsigned kAnybody = std::numeric_limits<unsigned>::max();

// A rank reads for itself what it alone needs, in runs of at least so many bytes. Shorter runs lie between those of
// others, and are read together with these.
constexpr std::uint64_t kWorthOwnRead = std::uint64_t{1} << 20;

// A range of an extent that is needed, and the one rank that needs it.
struct Claim {
  ReadItem range;
  unsigned owner = kAnybody;

  std::uint64_t end() const noexcept { return range.first + range.size; }
};

class Claims {
 public:
  explicit Claims(const Demand& demand) : demand_(demand), targets_(demand) {}

  // Disjoint and sorted, whole granules.
  std::vector<Claim> run() {
    for (std::size_t tensor = 0; tensor < demand_.plan.tensors.size(); ++tensor) add_tensor(tensor);
    std::ranges::sort(found_, {}, [](const Claim& claim) { return std::pair(claim.range.extent, claim.range.first); });
    std::vector<Claim> joined;
    for (const Claim& claim : found_) {
      if (joined.empty() || joined.back().range.extent != claim.range.extent || !join(joined.back(), claim))
        joined.push_back(claim);
    }
    return joined;
  }

 private:
  void add_tensor(std::size_t tensor) {
    const std::vector<RankPart>& parts = demand_.plan.tensors[tensor].parts;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::size_t targets = 0;
      unsigned rank = kAnybody;
      targets_.of_part(tensor, part, [&](const Target& target) {
        ++targets;
        rank = target.is_shared ? kAnybody : target.rank;
      });
      if (targets == 0) continue;
      const PartForm form = form_of(demand_.plan.tensors[tensor], parts[part]);
      if (!form.is_one_run()) return add(tensor, 0, demand_.extents.tensors[tensor].bytes, kAnybody);
      add(tensor, form.begin, form.size, targets == 1 ? rank : kAnybody);
    }
  }

  void add(std::size_t tensor, std::uint64_t first, std::uint64_t size, unsigned owner) {
    if (size == 0) return;
    const TensorPlace& place = demand_.extents.tensors[tensor];
    const Extent& extent = demand_.extents.all[place.extent];
    const std::uint64_t granule = extent.granule;
    const std::uint64_t begin = (place.first + first) / granule * granule;
    const std::uint64_t end = std::min((place.first + first + size + granule - 1) / granule * granule, extent.size);
    found_.push_back({{place.extent, begin, end - begin}, owner});
  }

  // What overlaps, several need; what touches and has the same owner is read together.
  static bool join(Claim& claim, const Claim& next) {
    const bool overlaps = next.range.first < claim.end();
    const bool touches = next.range.first == claim.end() && next.owner == claim.owner;
    if (!overlaps && !touches) return false;
    if (claim.owner != next.owner) claim.owner = kAnybody;
    claim.range.size = std::max(claim.end(), next.end()) - claim.range.first;
    return true;
  }

  const Demand& demand_;
  Targets targets_;
  std::vector<Claim> found_;
};

// Deals claims out so that every reader reads as much as the others.
class Dealer {
 public:
  Dealer(const Demand& demand, std::vector<Claim> claims) : demand_(demand), claims_(std::move(claims)) {
    for (const Claim& claim : claims_) total_ += claim.range.size;
    const std::uint64_t readers = demand.readers.size();
    room_.assign(demand.node_of.size(), 0);
    for (std::size_t i = 0; i < readers; ++i)
      room_[demand.readers[i]] = total_ / readers + (i < total_ % readers ? 1 : 0);
    items_.resize(demand.node_of.size());
  }

  std::vector<std::vector<ReadItem>> run() {
    for (Claim& claim : claims_) {
      if (claim.owner != kAnybody && claim.range.size >= kWorthOwnRead) give(claim.owner, claim.range);
    }
    for (Claim& claim : claims_) {
      while (claim.range.size != 0) give_to_next(claim.range);
    }
    for (auto& items : items_) tidy(items);
    return std::move(items_);
  }

  std::uint64_t total() const noexcept { return total_; }

 private:
  // As much of the front of the range as the reader has room for.
  void give(unsigned reader, ReadItem& range) {
    const std::uint64_t granule = demand_.extents.all[range.extent].granule;
    std::uint64_t size = std::min(range.size, room_[reader]);
    if (size < range.size) size = size / granule * granule;
    take(reader, range, size);
  }

  void take(unsigned reader, ReadItem& range, std::uint64_t size) {
    if (size == 0) return;
    items_[reader].push_back({range.extent, range.first, size});
    room_[reader] -= std::min(size, room_[reader]);
    range.first += size;
    range.size -= size;
  }

  // Fills the readers one after the other, so that each gets what lies together. A granule that does not fit goes to a
  // reader who has room for half of it; what is left at the end, to the readers with the most room.
  void give_to_next(ReadItem& range) {
    if (next_ == demand_.readers.size()) return give_to_emptiest(range);
    const unsigned reader = demand_.readers[next_];
    const std::uint64_t before = range.size;
    give(reader, range);
    if (range.size == 0) return;
    const std::uint64_t granule = std::min(demand_.extents.all[range.extent].granule, range.size);
    if (range.size == before && granule > 1 && room_[reader] >= granule / 2 && room_[reader] != 0)
      take(reader, range, granule);
    ++next_;
  }

  void give_to_emptiest(ReadItem& range) {
    const auto most_room =
        std::ranges::max_element(demand_.readers, {}, [&](unsigned reader) { return room_[reader]; });
    const std::uint64_t granule = std::min(demand_.extents.all[range.extent].granule, range.size);
    take(*most_room, range, std::max(granule, std::min(range.size, room_[*most_room] / granule * granule)));
  }

  static void tidy(std::vector<ReadItem>& items) {
    std::ranges::sort(items, {}, [](const ReadItem& item) { return std::pair(item.extent, item.first); });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < items.size(); ++i) {
      ReadItem& last = items[kept];
      if (last.extent == items[i].extent && last.first + last.size == items[i].first)
        last.size += items[i].size;
      else
        items[++kept] = items[i];
    }
    if (!items.empty()) items.resize(kept + 1);
  }

  const Demand& demand_;
  std::vector<Claim> claims_;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> room_;  // by rank
  std::size_t next_ = 0;             // the number of the reader who gets the next bytes
  std::vector<std::vector<ReadItem>> items_;
};

// Cuts at multiples of the granule where that leaves anything.
std::vector<ReadPiece> in_pieces(const std::vector<ReadItem>& items, const Extents& extents, std::uint64_t most) {
  std::vector<ReadPiece> pieces;
  std::uint64_t room = 0;
  for (ReadItem rest : items) {
    const std::uint64_t granule = extents.all[rest.extent].granule;
    while (rest.size != 0) {
      if (room == 0) {
        pieces.emplace_back();
        room = most;
      }
      std::uint64_t size = std::min(rest.size, room);
      if (size < rest.size && granule <= most) size = (rest.first + size) / granule * granule - rest.first;
      if (size > room) size = 0;  // the granule began before the item
      if (size != 0) pieces.back().push_back({rest.extent, rest.first, size});
      rest.first += size;
      rest.size -= size;
      room = rest.size != 0 ? 0 : room - size;
    }
  }
  return pieces;
}

// A granule is decoded as a whole, so a piece holds at least one. What can only be read in order and what is laid out
// in memory is kept by its reader.
std::uint64_t piece_with_a_granule(const Extents& extents, std::uint64_t piece_bytes) {
  for (const Extent& extent : extents.all) {
    if (!extent.is_strided && !extent.tensor.storage()->is_sequential())
      piece_bytes = std::max(piece_bytes, std::min(extent.granule, extent.size));
  }
  return piece_bytes;
}

bool are_cut_alike(const RankedTensor& a, const RankedTensor& b) {
  return std::ranges::equal(a.parts, b.parts, [&](const RankPart& x, const RankPart& y) {
    const PartForm p = form_of(a, x), q = form_of(b, y);
    return x.ranks == y.ranks && p.runs == q.runs && p.row == q.row && p.begin == q.begin && p.size == q.size;
  });
}

}  // namespace

std::vector<std::size_t> same_tensors(const RankPlan& plan, const Extents& extents) {
  std::vector<std::size_t> same(plan.tensors.size());
  std::map<std::tuple<std::size_t, std::uint64_t, std::uint64_t>, std::vector<std::size_t>> seen;
  for (std::size_t i = 0; i < same.size(); ++i) {
    const TensorPlace& place = extents.tensors[i];
    same[i] = i;
    if (place.bytes == 0) continue;
    std::vector<std::size_t>& others = seen[{place.extent, place.first, place.bytes}];
    const auto other = std::ranges::find_if(
        others, [&](std::size_t number) { return are_cut_alike(plan.tensors[number], plan.tensors[i]); });
    if (other != others.end())
      same[i] = *other;
    else
      others.push_back(i);
  }
  return same;
}

std::uint64_t PartForm::before(std::uint64_t byte) const {
  if (row == 0) return 0;
  const std::uint64_t run = std::min(byte / row, runs), rest = byte - run * row;
  if (run == runs) return runs * size;
  return run * size + std::min(rest - std::min(rest, begin), size);
}

PartForm form_of(const RankedTensor& tensor, const RankPart& part) {
  const DTypeInfo& type = info(tensor.dtype);
  const auto bytes_of = [&](std::uint64_t elements) { return elements / type.block_elements * type.block_bytes; };
  PartForm form;
  if (!part.cut) {
    form.row = form.size = part.bytes;
    return form;
  }
  std::uint64_t inner = 1;
  for (std::size_t i = 0; i < tensor.shape.rank(); ++i) {
    if (i < part.cut->axis) form.runs *= tensor.shape[i];
    if (i > part.cut->axis) inner *= tensor.shape[i];
  }
  form.row = bytes_of(tensor.shape[part.cut->axis] * inner);
  form.begin = bytes_of(part.cut->first * inner);
  form.size = bytes_of(part.cut->count * inner);
  if (form.size * form.runs != part.bytes) {
    throw Error(Errc::unsupported,
                fmt::format("tensor \"{}\" cannot be cut between bytes", escape_for_terminal(tensor.name)))
        .about(tensor.name)
        .hint("replicate it, or cut it along another dimension");
  }
  return form;
}

std::uint64_t Schedule::read_by(unsigned rank) const {
  std::uint64_t bytes = 0;
  for (const ReadPiece& piece : pieces[rank])
    for (const ReadItem& item : piece) bytes += item.size;
  return bytes;
}

std::size_t Schedule::rounds() const {
  std::size_t most = 0;
  for (const auto& each : pieces) most = std::max(most, each.size());
  return most;
}

Schedule make_schedule(const Demand& demand, std::uint64_t piece_bytes) {
  Dealer dealer(demand, Claims(demand).run());
  Schedule schedule;
  schedule.needed = schedule.read = dealer.total();
  const std::uint64_t most = piece_with_a_granule(demand.extents, piece_bytes);
  for (const auto& items : dealer.run()) schedule.pieces.push_back(in_pieces(items, demand.extents, most));
  return schedule;
}

}  // namespace ballast::mpi
