// Many shards as one checkpoint.
#pragma once

#include <string>
#include <vector>

#include <ballast/open.hpp>

#include "checkpoint/shard_index.hpp"

namespace ballast {

// Opens the files, several at a time, and puts their tensors one after the other. A name in two shards is taken from
// the one that the index says, with a note; without an index it is Errc::malformed. `index` may be null.
Checkpoint open_shards(const std::vector<std::string>& paths, const ShardIndex* index, const OpenOptions& options);

}  // namespace ballast
