// Many shards as one checkpoint.
#pragma once

#include <string>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/open_options.hpp>

namespace ballast {

// Opens the files, several at a time, and puts their tensors one after the other. A name in two of them is
// Errc::malformed.
Checkpoint open_shards(const std::vector<std::string>& paths, const OpenOptions& options);

// The same with the files that an index names; a name in two of them is taken from the one that the index says, with a
// note.
Checkpoint open_index(const SourcePtr& index, const OpenOptions& options);

}  // namespace ballast
