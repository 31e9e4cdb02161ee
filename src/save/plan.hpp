// From a checkpoint to a plan: which files, which bytes, where.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ballast/save.hpp>

namespace ballast {

// The format that the ending of `path` asks for; a folder asks for safetensors. Throws Errc::unsupported.
Format format_for(const std::string& path);

SavePlan plan_files(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options);

// One tensor behind `head`, called `name` in what is said about it.
SavePlan plan_tensor(const Tensor& tensor, std::vector<std::byte> head, const std::string& path,
                     const SaveOptions& options, const std::string& name);

}  // namespace ballast
