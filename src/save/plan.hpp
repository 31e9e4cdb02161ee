// From a checkpoint to a plan: which files, which bytes, where.
#pragma once

#include <string>

#include <ballast/save.hpp>

namespace ballast {

// The format that the ending of `path` asks for; a folder asks for safetensors. Throws Errc::unsupported.
Format format_for(const std::string& path);

SavePlan plan_files(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options);
SavePlan plan_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options);

}  // namespace ballast
