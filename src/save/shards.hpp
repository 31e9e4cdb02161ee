// How a state dict is cut into shards, and the index that says which shard holds what.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace ballast {

// The numbers of each shard's members, ascending. Bundles are taken in the given order; a new shard begins if the next
// bundle would not fit. A bundle that is larger than a shard gets a shard of its own.
std::vector<std::vector<std::size_t>> split_into_shards(std::span<const Bundle> bundles, std::uint64_t max_bytes);

struct ShardContents {
  std::string file;
  std::vector<std::string_view> names;
};

// {"metadata": {...}, "weight_map": {...}} as Hugging Face's tools write it: two spaces, keys sorted, a line end.
std::string shard_index_json(std::span<const ShardContents> shards, std::span<const Bundle> bundles);

}  // namespace ballast
