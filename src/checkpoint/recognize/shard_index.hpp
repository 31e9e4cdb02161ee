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
  std::uint64_t names_sum =
      0;  // sum of the hashes of all tensors' names: equal sums of equally many names mean the same names
  std::map<std::string, std::string, std::less<>> metadata;  // only its strings
  std::optional<std::uint64_t> total_size;
  std::shared_ptr<const void> text, unescaped;  // the memory of the names
};

// Refuses duplicate keys, and names that lead out of the folder (Errc::unsafe).
// `on_file` is called with every file as soon as it is named for the first time.
ShardIndex parse_shard_index(std::shared_ptr<const PaddedText> text, const Limits& limits,
                             const std::function<void(const std::string& file)>& on_file = {});
ShardIndex parse_shard_index(std::string_view json, const Limits& limits);  // from a copy

// Whether a name is one component of a path that stays in its folder.
bool is_basename(std::string_view name);

}  // namespace ballast
