// Many shards as one checkpoint.
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

// Opens the files, several at a time, and appends their tensors one after the other. A name in two files is
// Errc::malformed.
Checkpoint open_shards(const std::vector<std::string>& paths, const OpenOptions& options);

// The same for the files that an index names; a tensor whose name is in two files is taken from the file that the index
// says, with a note.
Checkpoint open_index(const SourcePtr& index, const OpenOptions& options);

}  // namespace ballast
