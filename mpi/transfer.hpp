// Transfer: carries a schedule out. Each rank reads its pieces one after the other, and meanwhile sends the piece
// before to the ranks that need it.
//
// The ranks go in rounds: each begins with all ranks agreeing that nobody failed, so that a failure ends all of them in
// the round in which it happens. In a round, ranks exchange messages by twos. At no time a rank holds more than two
// pieces that it reads, one message that it packs and one that it unpacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <vector>

#include <ballast/progress.hpp>

#include "communicator.hpp"
#include "schedule.hpp"

namespace ballast::mpi {

// The bytes of a part within some bytes of its tensor: copied out of these, and put together as the part has them.
struct PartRun {
  PartForm form;
  std::uint64_t first = 0, end = 0;  // bytes of the tensor
  std::byte* to = nullptr;           // where they go, on the rank that receives them
  const std::byte* from = nullptr;   // byte `first`, on the rank that reads it

  std::uint64_t size() const { return form.before(end) - form.before(first); }
  bool is_in_one_run() const { return size() == end - first; }
  void copy(std::byte* out) const;  // from `from`
};

struct TransferPlan {
  const Demand& demand;
  const Schedule& schedule;
  // The first byte of a part in memory that this rank can write to: its own, or that of its node.
  std::function<std::byte*(const Target&)> memory_of;
  Progress progress;
};

class Transfer {
 public:
  // `all` are the ranks that agree; `group`, those that send to each other: `plan.demand.readers`, in this order.
  Transfer(const Communicator& all, const Communicator& group, const TransferPlan& plan);

  void run();  // collective over `all`

  std::uint64_t sent() const noexcept { return sent_; }
  std::uint64_t received() const noexcept { return received_; }
  std::uint64_t twice() const noexcept { return twice_; }  // bytes that were read although nobody needs them

 private:
  // What this rank does with the piece that it reads in a round.
  struct Round {
    std::vector<ExtentRead> reads;
    std::vector<PartRun> local;
    std::vector<std::vector<PartRun>> outgoing, incoming;  // by the ranks of the group
  };

  Round round(std::size_t number);
  void add_reads(Round& round, const ReadPiece& piece, std::span<std::byte> buffer);
  bool add_direct(Round& round, const ReadItem& item);
  void add_incoming(Round& round, std::size_t number);
  std::future<void> start(const Round& round, std::size_t number);
  void deliver(const Round& round);
  void exchange(unsigned to, std::span<const PartRun> out, unsigned from, std::span<const PartRun> in);
  void report(std::size_t rounds_done, std::size_t rounds);

  const Communicator& all_;
  const Communicator& group_;
  const TransferPlan& plan_;
  Targets targets_;
  TensorIndex index_;
  unsigned me_;                       // in the job
  std::vector<unsigned> group_rank_;  // by the ranks of the job
  std::vector<std::byte> buffers_[2], packed_, unpacked_;
  ExtentReader reader_;
  std::uint64_t sent_ = 0, received_ = 0, twice_ = 0, total_ = 0;
};

}  // namespace ballast::mpi
