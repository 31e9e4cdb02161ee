// mpi: a checkpoint that many ranks on several machines load together. A part of its own, which needs MPI: link
// ballast::mpi, and include this header beside ballast.hpp, which does not include it.
//
// Every function here that takes a communicator is collective: all of its ranks call it, with the same arguments but
// for the model and the progress. The communicator is duplicated, so the caller's own messages may be under way. Only
// the thread that calls makes calls of MPI, so MPI_THREAD_FUNNELED is enough; with MPI_THREAD_SINGLE, nothing is read
// while bytes are sent. The model belongs to the caller; tensors that are views keep what they look at alive, also
// after MPI_Finalize.
//
// If a rank fails, all ranks throw: the StateDictError, or the Error of the first rank that failed, which names the
// rank. What the ranks cannot agree on, a fault of MPI itself or too little memory for a message, ends the job: the
// rank says it on stderr and calls MPI_Abort.
//
// A rank that throws before it calls a function leaves the others waiting in it. So read the rules by load_rank_rules()
// of this namespace, which fails on all ranks or on none.
//
// Example:
//   struct Linear { Tensor weight, bias; };
//   BALLAST_FIELDS(Linear, weight, bias)
//
//   Linear layer;
//   const auto rules = mpi::load_rank_rules(MPI_COMM_WORLD, "ranks.json");
//   const mpi::Loaded loaded = mpi::load_state_dict(MPI_COMM_WORLD, layer, "model.safetensors", rules);
//   std::cout << to_string(loaded.ranks);
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ballast/bind.hpp>
#include <ballast/load_state_dict.hpp>
#include <ballast/open_options.hpp>
#include <ballast/rank_plan.hpp>

namespace ballast::mpi {

// The bytes that one rank moved. What a rank copies for itself is neither sent nor received.
struct RankTraffic {
  std::uint64_t opening = 0;   // read from files while the target was opened
  std::uint64_t read = 0;      // read from files afterwards
  std::uint64_t sent = 0;      // to other ranks
  std::uint64_t received = 0;  // from other ranks
  std::uint64_t written = 0;   // to files
  std::uint64_t held = 0;      // in memory at the end; what a node shares is held by its first rank
  std::uint64_t twice = 0;     // of `read`, what another rank reads as well, or nobody needs: parts of granules
};

// What every rank did, by rank: a value, and the same on every rank.
struct RankReport {
  std::vector<RankTraffic> ranks;
  double seconds = 0;  // of the rank that took the longest

  RankTraffic total() const;
  // The largest of the ranks' numbers, divided by their mean: 1 if all ranks have the same, or all have none.
  double imbalance(std::uint64_t RankTraffic::*number) const;
};
std::string to_string(const RankReport& report);  // a table, without the numbers that all ranks have none of

// Who reads a byte that several ranks need.
enum class ReadOnce : std::uint8_t {
  job,   // one rank of all, which sends it to the others
  node,  // one rank of each node: for files on disks of the nodes, and for networks that are slower than the files
};

struct LoadOptions {
  OpenOptions open{};           // the conversion cache is not looked at
  LoadStateDictOptions load{};  // without a slice; `mode` and `consume` do not matter, since bytes arrive in memory
  ReadOnce read_once = ReadOnce::job;
  bool share = true;  // the ranks of a node have one copy of what several of them need and may look at
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;  // for buffers, on each rank; at least four granules (frames)
};

struct Loaded {
  LoadReport report;  // of this rank
  RankReport ranks;
};

// The rules of ballast::load_rank_rules(path), which rank 0 reads for all ranks.
std::vector<RankRule> load_rank_rules(MPI_Comm ranks, const std::string& path);

// Fills the model of each rank with its parts of the tensors, as plan_ranks() cuts them for as many ranks as the
// communicator has. Every byte that some rank needs is read once. Ranks that were given other rules or options, or that
// opened another checkpoint, are Errc::mismatch. Like ballast::load_state_dict, it checks everything
// before a model changes, on all ranks.
//
// Memory: what the model holds in the end, and `memory_bytes`. A rank that reads a tensor that lies strided in its file
// holds it meanwhile; a rank whose model casts or stacks tensors into memory of its own, or wants copies of tensors
// (LoadStateDictOptions::assign), holds what is not copied yet.
template <class Model>
Loaded load_state_dict(MPI_Comm ranks, Model& model, const std::string& target, const std::vector<RankRule>& rules,
                       const LoadOptions& options = {});

// What such a load will read, send and hold, for models that take everything: planned from the headers, without MPI.
// `seconds` is how long the plan took. Any number of ranks can be planned, on nodes that are filled one after the
// other.
RankReport planned_traffic(const Checkpoint& checkpoint, unsigned ranks, const std::vector<RankRule>& rules,
                           unsigned ranks_per_node, const LoadOptions& options = {});

// The same for fields that are bound by a function, which is called once on each rank; what it throws ends all ranks.
Loaded load_bound(MPI_Comm ranks, const std::function<std::vector<BoundTensor>()>& bind_model,
                  const std::string& target, const std::vector<RankRule>& rules, const LoadOptions& options);

template <class Model>
Loaded load_state_dict(MPI_Comm ranks, Model& model, const std::string& target, const std::vector<RankRule>& rules,
                       const LoadOptions& options) {
  return load_bound(
      ranks, [&] { return bind(model); }, target, rules, options);
}

}  // namespace ballast::mpi
