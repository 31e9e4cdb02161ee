// What it costs to load a model of 671 billion parameters by 1 to 64 ranks: bytes read, sent and held by each rank,
// planned from the headers and not run. Prints the table of bench/README.md. Fails if a rank reads more than 1.05 of
// its share, or if planning takes a second or more.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>
#include <ballast/mpi.hpp>
#include <ballast/open.hpp>
#include <ballast/text.hpp>

#include "generate.hpp"
#include "moe_layout.hpp"

namespace {

using ballast::format_bytes;
using ballast::mpi::RankReport;
using ballast::mpi::RankTraffic;

constexpr unsigned kRanksANode = 8;
constexpr double kMostImbalance = 1.05, kMostSeconds = 1;

std::uint64_t most_of(const RankReport& report, std::uint64_t RankTraffic::*number) {
  std::uint64_t most = 0;
  for (const RankTraffic& rank : report.ranks) most = std::max(most, rank.*number);
  return most;
}

struct Planned {
  RankReport report;
  double seconds = 0;  // of a processor, so that other programs do not count
};

Planned planned(const ballast::Checkpoint& checkpoint, unsigned ranks) {
  const std::clock_t start = std::clock();
  Planned result{ballast::mpi::planned_traffic(checkpoint, ranks, ballast::bench::moe_rules(), kRanksANode)};
  result.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return result;
}

}  // namespace

int main() {
  ballast::bench::write_moe_model(ballast::bench::scratch());
  const ballast::Checkpoint checkpoint = ballast::open(ballast::bench::scratch());
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint) bytes += tensor.nbytes();
  fmt::print("{} tensors in {} shards, {}\n\n", checkpoint.size(), checkpoint.shards, format_bytes(bytes));
  fmt::print(
      "| ranks | read by all | read by a rank, at most | of its share | sent by a rank, at most | received by a rank, "
      "at most | held by a rank, mean | planned in, processor time |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  bool is_good = true;
  for (unsigned ranks = 1; ranks <= 64; ranks *= 2) {
    const auto [report, seconds] = planned(checkpoint, ranks);
    const double imbalance = report.imbalance(&RankTraffic::read);
    is_good = is_good && imbalance <= kMostImbalance && seconds < kMostSeconds && report.total().read == bytes;
    fmt::print("| {} | {} | {} | {:.3f} | {} | {} | {} | {:.2f} s |\n", ranks, format_bytes(report.total().read),
               format_bytes(most_of(report, &RankTraffic::read)), imbalance,
               format_bytes(most_of(report, &RankTraffic::sent)), format_bytes(most_of(report, &RankTraffic::received)),
               format_bytes(report.total().held / ranks), seconds);
  }
  if (!is_good) fmt::print(stderr, "a rank reads too much, a byte is read twice, or planning takes too long\n");
  return is_good ? 0 : 1;
}
