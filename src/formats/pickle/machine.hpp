// The pickle machine: protocols 0 to 5, every opcode, no call instruction.
//
// It reads a source through a small window and builds a graph. It does not care what a global would do when called:
// REDUCE, NEWOBJ, INST and similar instructions make an object node. All storage is counted against the limits and
// against the bytes of the file, so a file costs what its size costs, whatever it says.
#pragma once

#include <cstdint>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/limits.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

struct Pickle {
  NodeId root = kNoNode;
  std::uint64_t end = 0;  // the byte after STOP
};

// Whether the raw arrays of joblib are stepped over, as joblib does, or taken for instructions, as pickle does.
enum class RawArrays : std::uint8_t { stepped_over, not_known };

// Runs the pickle that begins at `first` and lies before `last`. Throws Errc::malformed with the byte, or Errc::limit;
// what the graph has got by then, above all its globals, stays valid. One graph may take several pickles of its source.
Pickle run(Graph& graph, std::uint64_t first, std::uint64_t last, const Limits& limits);

inline constexpr std::size_t kMostComplaints = 100;  // the most that are kept; a pickle with more of them is noise

// The same for callers that only look for globals: an instruction that makes no sense is a complaint, and the machine
// goes on behind it. Throws if that is not possible: at a byte that is not an instruction, at the end, over a limit, or
// if an instruction fails after kMostComplaints.
Pickle run_leniently(Graph& graph, std::uint64_t first, std::uint64_t last, const Limits& limits,
                     std::vector<Error>& complaints, RawArrays arrays = RawArrays::stepped_over);

}  // namespace ballast::pickle
