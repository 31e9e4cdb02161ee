// The statistics of many tensors, packed for a report, "ballast.view.stats/1": columns of rounded numbers, and a
// histogram of a letter a bin.
#pragma once

#include <cstdint>
#include <string>

#include <ballast/checkpoint.hpp>
#include <ballast/progress.hpp>

#include "../session.hpp"

namespace ballast::cli {

struct StatsSample {
  std::uint64_t values = 0;  // that are looked at of each tensor; 0: all
  unsigned bins = 64;
};

struct PackedStats {
  std::string document;
  std::size_t unreadable = 0;  // tensors that have no statistics because reading them failed; the document says why
};

PackedStats stats_columns(const Session& session, const Checkpoint& checkpoint, const StatsSample& sample,
                          const Progress& progress);

// About so many of a tensor's values, evenly from all of it: whole runs of neighbours where it has any, which are cheap
// to read. A matrix that is one long row gives single values, and blocks that pack several values stay whole.
Tensor sample_of(const Tensor& tensor, std::uint64_t values);

}  // namespace ballast::cli
