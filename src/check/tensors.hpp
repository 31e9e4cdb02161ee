// What check() finds in the tensors' types and bytes, and in the files beside them.
#pragma once

#include <ballast/check.hpp>
#include <ballast/checkpoint.hpp>

#include "check/collector.hpp"

namespace ballast {

// Dtypes that the policy does not have, and tensors that are stored twice.
void look_at_tensors(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out);

// In a model's folder: the licence, what loaders need, and files that cannot be read.
void look_at_folder(const Checkpoint& checkpoint, const CheckOptions& options, FindingCollector& out);

}  // namespace ballast
