// How a state dict is cut into shards, and the index that says which shard holds what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/state_dict.hpp>

namespace ballast {

using Entries = std::vector<const StateDict::Entry*>;

// In the given order, a new shard where the next tensor would not fit; a tensor larger than a shard gets its own.
std::vector<Entries> split_into_shards(const Entries& entries, std::uint64_t max_bytes);

// "model-00002-of-00005.safetensors" for the stem "model".
std::string shard_name(const std::string& stem, std::size_t number, std::size_t count, const std::string& ending);

struct ShardContents {
  std::string file;
  Entries entries;
};

// {"metadata": {...}, "weight_map": {...}} as Hugging Face's tools write it: two spaces, keys sorted, a line end.
std::string shard_index_json(const std::vector<ShardContents>& shards);

}  // namespace ballast
