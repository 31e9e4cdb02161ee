// What `stats` prints: a JSON document, a table of tensors, a table of channels, or a table of problems.
#pragma once

#include <cstddef>
#include <span>

#include <ballast/problems.hpp>
#include <ballast/stats.hpp>

#include "../session.hpp"

namespace ballast::cli {

// The parts of the answer that the user asked for.
struct StatsColumns {
  bool sparkline = false;  // in a JSON document, the histogram
  bool is_long = false;    // norms and outliers
  bool channels = false;
  unsigned top = 0;  // channels that are shown of each tensor; 0: all
};

void write_stats_json(Session& session, const Checkpoint& checkpoint, std::span<const TensorStats> results,
                      const StatsColumns& columns);
void write_stats_table(Session& session, const Checkpoint& checkpoint, std::span<const TensorStats> results,
                       const StatsColumns& columns);
void write_channels_table(Session& session, const Checkpoint& checkpoint, std::span<const TensorStats> results,
                          unsigned top);

void write_problems_json(Session& session, const Checkpoint& checkpoint, const ProblemReport& report);
void write_problems_table(Session& session, const ProblemReport& report);

}  // namespace ballast::cli
