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

std::string stats_columns(const Session& session, const Checkpoint& checkpoint, const StatsSample& sample,
                          const Progress& progress);

// Some of a tensor's values, evenly from all of it: whole runs of neighbours, as cheap to read as they can be.
Tensor sample_of(const Tensor& tensor, std::uint64_t values);

}  // namespace ballast::cli
