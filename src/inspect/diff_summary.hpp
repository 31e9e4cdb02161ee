// What the changes of a report come to: overall, by role, and by pairs of dtypes.
#pragma once

#include <ballast/diff.hpp>

namespace ballast {

// Fills overall, roles and dtype_costs from what else the report says of these two checkpoints.
void summarize_changes(DiffReport& report, const Checkpoint& a, const Checkpoint& b);

}  // namespace ballast
