// Folders that hold other folders with checkpoints: a pipeline of diffusers, and a repository in the Hub's cache.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

// A part of a pipeline that has weights: "unet".
struct PipelinePart {
  std::string name, class_name, folder;
};

struct Pipeline {
  std::string class_name;  // "StableDiffusionPipeline"
  std::vector<PipelinePart> parts;
  std::vector<Note> notes;  // models that model_index.json names and that have no weights here
};

// What a folder's model_index.json says, if the folder has one and no checkpoint of its own. Errc::malformed if that is
// no such file, Errc::unsafe if a part is not a folder in it.
std::optional<Pipeline> find_pipeline(const std::string& folder, const OpenOptions& options);

// All parts as one checkpoint, each with its name before those of its tensors; `root` chooses a part, and what is in
// it. `open_part` opens a part, whose name is then its own root.
using OpenPart = std::function<Checkpoint(const std::string& folder, const OpenOptions& options)>;
Checkpoint open_pipeline(const std::string& folder, const Pipeline& pipeline, const OpenOptions& options,
                         const OpenPart& open_part);

// The snapshot to open of a repository in the Hub's cache, models--ORG--NAME: that of the branch main, or else the only
// one. Nothing if the folder is none. Errc::invalid_argument if several could be meant.
std::optional<std::string> find_snapshot(const std::string& folder, const Files& files);

// That snapshot, or all that could be meant; none if the folder is no such repository.
std::vector<std::string> possible_snapshots(const std::string& folder, const Files& files);

}  // namespace ballast
