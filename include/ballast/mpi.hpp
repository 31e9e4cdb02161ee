// mpi: a checkpoint that many ranks on several machines load together. A part of its own, which needs MPI: link
// ballast::mpi, and include this header beside ballast.hpp, which does not include it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ballast::mpi {

// The bytes that one rank moved. What a rank copies for itself is neither sent nor received.
struct RankTraffic {
  std::uint64_t opening = 0;   // read from files while the target was opened
  std::uint64_t read = 0;      // read from files afterwards
  std::uint64_t sent = 0;      // to other ranks
  std::uint64_t received = 0;  // from other ranks
  std::uint64_t written = 0;   // to files
  std::uint64_t held = 0;      // in memory at the end; what a node shares is held by its first rank
  std::uint64_t twice = 0;     // of `read`, what another rank reads as well, or nobody needs
};

// What every rank did, by rank: a value, and the same on every rank.
struct RankReport {
  std::vector<RankTraffic> ranks;
  double seconds = 0;

  RankTraffic total() const;
  // The largest of the ranks' numbers, divided by their mean: 1 if all ranks have the same, or all have none.
  double imbalance(std::uint64_t RankTraffic::*number) const;
};
std::string to_string(const RankReport& report);  // a table

}  // namespace ballast::mpi
