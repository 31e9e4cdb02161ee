// From a list of tensors to a plan: which files, which bytes, where.
#pragma once

#include <string>

#include <ballast/save.hpp>

#include "save/shards.hpp"

namespace ballast {

SavePlan plan_files(const Entries& entries, const Metadata& metadata, const std::string& path,
                    const SaveOptions& options);
SavePlan plan_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options);

}  // namespace ballast
