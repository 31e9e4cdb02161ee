// Which files of a folder make up its checkpoint.
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

struct FolderContents {
  std::string index;               // the path of an index.json; empty if there is none
  std::vector<std::string> files;  // without an index: the file, or the shards in order
  std::string missing;             // an error text for a set that is not complete; `files` are those that are there
  std::vector<Note> notes;
};

// Whether one of the names in a folder is that of a checkpoint or of an index.
bool has_checkpoint(const std::vector<std::string>& names);

// The files and sets of shards that a folder with several checkpoints leaves to choose from: the name of each file, and
// of the first file of each set. At most one if look_into() chooses.
std::vector<std::string> choices_among(std::vector<std::string> names);

// Chooses an index, then model.safetensors (or the other way round, see Files::prefers_whole), then a complete set of
// shards, then the only file among `names`, which are the names in the folder; with a variant ("fp16"), among those
// that have it in their names. Throws Errc::not_found if there is nothing, Errc::invalid_argument if several could be
// meant.
FolderContents look_into(const std::string& folder, std::vector<std::string> names, const Files& files,
                         const std::string& variant = {});

// The same for a set that may lack shards.
FolderContents look_for_damage(const std::string& folder, std::vector<std::string> names, const Files& files,
                               const std::string& variant = {});

}  // namespace ballast
