// From a checkpoint to a plan: which bytes go to which offsets of which files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ballast/save.hpp>

#include "formats/format.hpp"

namespace ballast {

// Plans the file `path`, or its shards. Throws Errc::unsupported, with a way out, for what the format cannot store.
SavePlan plan_files(const Checkpoint& checkpoint, const FileFormat& format, const std::string& path,
                    const SaveOptions& options);

// Plans one tensor behind `head`. Messages call the tensor `name`.
SavePlan plan_tensor(const Tensor& tensor, std::vector<std::byte> head, const std::string& path,
                     const SaveOptions& options, const std::string& name);

// Adds a file that is written with the others. An index stays the last file, since it says that the others are there.
void add_file(SavePlan& plan, SavePlan::File file);

}  // namespace ballast
