#include "save/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/json_string.hpp"

namespace ballast {

std::vector<std::vector<std::size_t>> split_into_shards(std::span<const Bundle> bundles, std::uint64_t max_bytes) {
  std::vector<std::vector<std::size_t>> shards(1);
  std::uint64_t used = 0;
  for (const Bundle& bundle : bundles) {
    const bool fits = used <= max_bytes && bundle.bytes <= max_bytes - used;
    if (max_bytes != 0 && !fits && !shards.back().empty()) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().insert(shards.back().end(), bundle.members.begin(), bundle.members.end());
    used += bundle.bytes;
  }
  for (auto& shard : shards) std::sort(shard.begin(), shard.end());
  return shards;
}

std::string shard_index_json(std::span<const ShardContents> shards, std::span<const Bundle> bundles) {
  std::uint64_t total_bytes = 0, total_parameters = 0;
  for (const Bundle& bundle : bundles) {
    total_bytes += bundle.bytes;
    total_parameters += bundle.numel;
  }
  std::map<std::string_view, std::string_view> weight_map;
  for (const ShardContents& shard : shards) {
    for (const std::string_view name : shard.names) weight_map.emplace(name, shard.file);
  }
  std::string text = fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_parameters\": {},\n    \"total_size\": {}\n  }},\n  \"weight_map\": {{",
      total_parameters, total_bytes);
  const char* separator = "\n    ";
  for (const auto& [tensor, file] : weight_map) {
    text += separator;
    append_json_string(text, tensor);
    text += ": ";
    append_json_string(text, file);
    separator = ",\n    ";
  }
  text += weight_map.empty() ? "}\n}\n" : "\n  }\n}\n";
  return text;
}

}  // namespace ballast
