// From a checkpoint to a plan: which files, which bytes, where.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ballast/save.hpp>

#include "formats/format.hpp"

namespace ballast {

// The file `path`, or its shards. Throws Errc::unsupported, with a way out, for what the format cannot store.
SavePlan plan_files(const Checkpoint& checkpoint, const FileFormat& format, const std::string& path,
                    const SaveOptions& options);

// One tensor behind `head`, called `name` in what is said about it.
SavePlan plan_tensor(const Tensor& tensor, std::vector<std::byte> head, const std::string& path,
                     const SaveOptions& options, const std::string& name);

}  // namespace ballast
