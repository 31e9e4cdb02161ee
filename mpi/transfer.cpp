#include "transfer.hpp"

#include <ballast/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ballast::mpi {
namespace {

constexpr int kTag = 25;

// Reading straight into the memory of a part saves a copy; a read that is cut up for that must still be large.
constexpr std::uint64_t kWorthDirect = std::uint64_t{1} << 20;

std::uint64_t bytes_of(std::span<const PartRun> runs) {
  std::uint64_t bytes = 0;
  for (const PartRun& run : runs) bytes += run.size();
  return bytes;
}

std::uint64_t bytes_of(const ReadPiece& piece) {
  std::uint64_t bytes = 0;
  for (const ReadItem& item : piece) bytes += item.size;
  return bytes;
}

// The memory of the runs if it is all in one place, so that nothing need be packed.
const std::byte* in_one_place(std::span<const PartRun> out) {
  const std::byte* end = out.empty() ? nullptr : out.front().from;
  for (const PartRun& run : out) {
    if (run.from != end || !run.is_in_one_run()) return nullptr;
    end = run.from + run.size();
  }
  return out.empty() ? nullptr : out.front().from;
}

std::byte* one_destination(std::span<const PartRun> in) {
  std::byte* end = in.empty() ? nullptr : in.front().to;
  for (const PartRun& run : in) {
    if (run.to != end) return nullptr;
    end = run.to + run.size();
  }
  return in.empty() ? nullptr : in.front().to;
}

}  // namespace

void PartRun::copy(std::byte* out) const {
  if (first == end) return;
  for (std::uint64_t run = first / form.row; run * form.row < end; ++run) {
    const std::uint64_t begin = std::max(first, run * form.row + form.begin);
    const std::uint64_t behind = std::min(end, run * form.row + form.begin + form.size);
    if (begin >= behind) continue;
    std::memcpy(out, from + (begin - first), static_cast<std::size_t>(behind - begin));
    out += behind - begin;
  }
}

Transfer::Transfer(const Communicator& all, const Communicator& group, const TransferPlan& plan)
    : all_(all),
      group_(group),
      plan_(plan),
      targets_(plan.demand),
      index_(plan.demand),
      me_(all.rank()),
      reader_(plan.demand.extents) {
  group_rank_.assign(plan.demand.node_of.size(), 0);
  const std::vector<unsigned>& readers = plan.demand.readers;
  for (unsigned i = 0; i < readers.size(); ++i) group_rank_[readers[i]] = i;
  std::uint64_t most = 0;
  for (const ReadPiece& piece : plan.schedule.pieces[me_]) {
    most = std::max(most, bytes_of(piece));
    total_ += bytes_of(piece);
  }
  for (auto& buffer : buffers_) buffer.resize(static_cast<std::size_t>(most));
}

// Straight into the memory of the parts, if all of the item goes into memory that this rank can write to.
bool Transfer::add_direct(Round& round, const ReadItem& item) {
  std::vector<ExtentRead> reads;
  std::uint64_t next = 0;
  bool is_direct = true;
  for_each_delivery(plan_.demand, targets_, index_, me_, item, [&](const Delivery& delivery) {
    const RankedTensor& tensor = plan_.demand.plan.tensors[delivery.target.tensor];
    const PartForm form = form_of(tensor, tensor.parts[delivery.target.part]);
    const std::uint64_t first = form.before(delivery.first), size = form.before(delivery.end) - first;
    is_direct = is_direct && delivery.receiver == me_ && form.is_one_run() && delivery.item_offset == next &&
                size == delivery.end - delivery.first;
    next = delivery.item_offset + size;
    if (!is_direct) return;
    reads.push_back({item.extent,
                     {item.first + delivery.item_offset,
                      {plan_.memory_of(delivery.target) + first, static_cast<std::size_t>(size)}}});
  });
  if (!is_direct || next != item.size || item.size / kWorthDirect < reads.size()) return false;
  round.reads.insert(round.reads.end(), reads.begin(), reads.end());
  return true;
}

void Transfer::add_reads(Round& round, const ReadPiece& piece, std::span<std::byte> buffer) {
  for (const ReadItem& item : piece) {
    if (add_direct(round, item)) continue;
    std::byte* const begin = buffer.data();
    round.reads.push_back({item.extent, {item.first, {begin, static_cast<std::size_t>(item.size)}}});
    buffer = buffer.subspan(static_cast<std::size_t>(item.size));
    std::uint64_t needed = 0;
    Target last{.tensor = plan_.demand.plan.tensors.size()};
    for_each_delivery(plan_.demand, targets_, index_, me_, item, [&](const Delivery& delivery) {
      const RankedTensor& tensor = plan_.demand.plan.tensors[delivery.target.tensor];
      PartRun run{form_of(tensor, tensor.parts[delivery.target.part]), delivery.first, delivery.end, nullptr,
                  begin + delivery.item_offset};
      if (delivery.target.tensor != last.tensor || delivery.target.part != last.part) needed += run.size();
      last = delivery.target;
      if (delivery.receiver != me_) return round.outgoing[group_rank_[delivery.receiver]].push_back(run);
      run.to = plan_.memory_of(delivery.target) + run.form.before(run.first);
      round.local.push_back(run);
    });
    twice_ += item.size - std::min(needed, item.size);
  }
}

void Transfer::add_incoming(Round& round, std::size_t number) {
  for (const unsigned reader : plan_.demand.readers) {
    const auto& pieces = plan_.schedule.pieces[reader];
    if (reader == me_ || number >= pieces.size()) continue;
    for (const ReadItem& item : pieces[number]) {
      for_each_delivery(plan_.demand, targets_, index_, reader, item, [&](const Delivery& delivery) {
        if (delivery.receiver != me_) return;
        const RankedTensor& tensor = plan_.demand.plan.tensors[delivery.target.tensor];
        PartRun run{form_of(tensor, tensor.parts[delivery.target.part]), delivery.first, delivery.end, nullptr,
                    nullptr};
        run.to = plan_.memory_of(delivery.target) + run.form.before(run.first);
        round.incoming[group_rank_[reader]].push_back(run);
      });
    }
  }
}

Transfer::Round Transfer::round(std::size_t number) {
  Round round;
  round.outgoing.resize(group_.size());
  round.incoming.resize(group_.size());
  const auto& pieces = plan_.schedule.pieces[me_];
  if (number < pieces.size()) add_reads(round, pieces[number], buffers_[number % 2]);
  add_incoming(round, number);
  // All memory that the round needs is taken here, where a failure ends all ranks.
  for (unsigned rank = 0; rank < group_.size(); ++rank) {
    if (in_one_place(round.outgoing[rank]) == nullptr)
      packed_.resize(std::max<std::size_t>(packed_.size(), static_cast<std::size_t>(bytes_of(round.outgoing[rank]))));
    if (one_destination(round.incoming[rank]) == nullptr)
      unpacked_.resize(
          std::max<std::size_t>(unpacked_.size(), static_cast<std::size_t>(bytes_of(round.incoming[rank]))));
  }
  return round;
}

// In a thread of its own; in this one, when the future is asked, if MPI does not know of threads.
std::future<void> Transfer::start(const Round& round, std::size_t number) {
  const auto policy = all_.may_use_threads() ? std::launch::async : std::launch::deferred;
  return std::async(policy, [this, &round, number] {
    std::vector<ExtentRead> soon;  // the memory does not matter, only its size
    const auto& pieces = plan_.schedule.pieces[me_];
    if (number + 1 < pieces.size()) {
      for (const ReadItem& item : pieces[number + 1])
        soon.push_back({item.extent, {item.first, {buffers_[0].data(), static_cast<std::size_t>(item.size)}}});
    }
    reader_.read(round.reads, soon);
  });
}

void Transfer::exchange(unsigned to, std::span<const PartRun> out, unsigned from, std::span<const PartRun> in) {
  const std::uint64_t out_bytes = bytes_of(out), in_bytes = bytes_of(in);
  const std::byte* source = in_one_place(out);
  if (source == nullptr) {
    std::byte* end = packed_.data();
    for (const PartRun& run : out) {
      run.copy(end);
      end += run.size();
    }
    source = packed_.data();
  }
  std::byte* const place = one_destination(in);
  std::byte* const destination = place != nullptr ? place : unpacked_.data();
  const auto part = [](std::uint64_t bytes, std::uint64_t at) {
    return static_cast<int>(std::min(kMostBytesAMessage, bytes - std::min(at, bytes)));
  };
  for (std::uint64_t at = 0; at < std::max(out_bytes, in_bytes); at += kMostBytesAMessage) {
    const int sends = part(out_bytes, at), receives = part(in_bytes, at);
    check(
        MPI_Sendrecv(source + (sends != 0 ? at : 0), sends, MPI_BYTE, sends != 0 ? static_cast<int>(to) : MPI_PROC_NULL,
                     kTag, destination + (receives != 0 ? at : 0), receives, MPI_BYTE,
                     receives != 0 ? static_cast<int>(from) : MPI_PROC_NULL, kTag, group_.handle(), MPI_STATUS_IGNORE),
        "sending tensors");
  }
  sent_ += out_bytes;
  received_ += in_bytes;
  if (place != nullptr) return;
  const std::byte* begin = unpacked_.data();
  for (const PartRun& run : in) {
    std::memcpy(run.to, begin, static_cast<std::size_t>(run.size()));
    begin += run.size();
  }
}

void Transfer::deliver(const Round& round) {
  for (const PartRun& run : round.local) run.copy(run.to);
  const unsigned size = group_.size(), rank = group_.rank();
  for (unsigned step = 1; step < size; ++step) {
    const unsigned to = (rank + step) % size, from = (rank + size - step) % size;
    exchange(to, round.outgoing[to], from, round.incoming[from]);
  }
}

void Transfer::report(std::size_t done, std::size_t rounds) {
  if (!plan_.progress) return;
  const std::uint64_t bytes = done == rounds ? total_ : total_ / rounds * done;
  if (!plan_.progress({"reading", bytes, total_})) throw Error(Errc::cancelled, "cancelled");
}

void Transfer::run() {
  const auto rounds = static_cast<std::size_t>(all_.largest(plan_.schedule.rounds()));
  Round now, next;
  std::future<void> reading;
  all_.together([&] {
    now = round(0);
    reading = start(now, 0);
  });
  for (std::size_t number = 0; number < rounds; ++number) {
    std::future<void> following;
    all_.together([&] {
      reading.get();
      next = round(number + 1);
      following = start(next, number + 1);
      report(number, rounds);
    });
    deliver(now);
    following.wait();  // a round stays where it is while a thread reads for it
    now = std::move(next);
    reading = std::move(following);
  }
  all_.together([&] {
    if (reading.valid()) reading.get();
    report(rounds, rounds);
  });
}

}  // namespace ballast::mpi
