// ShardIndex: ...index.json, which says which shard holds which tensor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/limits.hpp>

#include "core/padded_text.hpp"

namespace ballast {

struct ShardIndex {
  struct Place {
    std::string_view tensor;
    std::uint32_t file;  // the number of the file in `files`
  };
  std::vector<std::string> files;  // basenames, sorted, each once
  std::vector<Place> weight_map;   // in the order of the text
  // The sum of the hashes of all tensors' names: equal sums of equally many names mean the same names.
  std::uint64_t names_sum = 0;
  std::map<std::string, std::string, std::less<>> metadata;  // only its strings
  std::optional<std::uint64_t> total_size;
  std::shared_ptr<const void> text, unescaped;  // the memory of the names
};

// Refuses duplicate keys, and names that lead out of the folder (Errc::unsafe).
ShardIndex parse_shard_index(std::shared_ptr<const PaddedText> text, const Limits& limits);
ShardIndex parse_shard_index(std::string_view json, const Limits& limits);  // from a copy

// The same, but for tensors that are named twice: whoever opens the shards compares their names with those of the index
// anyway, and need call refuse_repeated_tensors() only if they differ. `on_file` is called with every file as soon as
// it is named for the first time.
ShardIndex parse_shard_index_early(std::shared_ptr<const PaddedText> text, const Limits& limits,
                                   const std::function<void(const std::string& file)>& on_file);
void refuse_repeated_tensors(const ShardIndex& index);

// Whether a name is one component of a path that stays in its folder.
bool is_basename(std::string_view name);

}  // namespace ballast
