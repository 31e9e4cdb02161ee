#include "save/shards.hpp"

#include <fmt/format.h>

#include <map>

#include "core/json_string.hpp"

namespace ballast {

std::vector<Entries> split_into_shards(const Entries& entries, std::uint64_t max_bytes) {
  std::vector<Entries> shards(1);
  std::uint64_t used = 0;
  for (const StateDict::Entry* entry : entries) {
    const std::uint64_t size = entry->tensor.nbytes();
    const bool fits = used <= max_bytes && size <= max_bytes - used;
    if (max_bytes != 0 && !fits && !shards.back().empty()) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().push_back(entry);
    used += size;
  }
  return shards;
}

std::string shard_name(const std::string& stem, std::size_t number, std::size_t count, const std::string& ending) {
  return fmt::format("{}-{:05}-of-{:05}{}", stem, number, count, ending);
}

std::string shard_index_json(const std::vector<ShardContents>& shards) {
  std::uint64_t total_bytes = 0, total_parameters = 0;
  std::map<std::string_view, std::string_view> weight_map;
  for (const ShardContents& shard : shards) {
    for (const StateDict::Entry* entry : shard.entries) {
      total_bytes += entry->tensor.nbytes();
      total_parameters += entry->tensor.numel();
      weight_map.emplace(entry->name, shard.file);
    }
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
