// How a state dict is cut into shards, and the index that says which shard holds what.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/state_dict.hpp>

namespace ballast {

using Entries = std::vector<const StateDict::Entry*>;

// What goes into a shard as a whole: a tensor, or several that share bytes.
struct Bundle {
  std::vector<std::size_t> members;  // their numbers, ascending
  std::uint64_t bytes = 0, numel = 0;
};

// The numbers of each shard's members, ascending. In the given order, a new shard where the next bundle would not fit;
// one larger than a shard gets its own.
std::vector<std::vector<std::size_t>> split_into_shards(std::span<const Bundle> bundles, std::uint64_t max_bytes);

// "model-00002-of-00005.safetensors" for the stem "model".
std::string shard_name(const std::string& stem, std::size_t number, std::size_t count, const std::string& ending);

struct ShardContents {
  std::string file;
  std::vector<std::string_view> names;
};

// {"metadata": {...}, "weight_map": {...}} as Hugging Face's tools write it: two spaces, keys sorted, a line end.
std::string shard_index_json(std::span<const ShardContents> shards, std::span<const Bundle> bundles);

}  // namespace ballast
