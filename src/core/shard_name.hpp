// The names of files that make up a whole: "model-00002-of-00005.safetensors", and "model.safetensors.index.json".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ballast {

inline constexpr std::string_view kIndexEnding = ".index.json";  // behind the name of the whole

struct ShardName {
  std::string stem;                     // "model", or "folder/model"
  std::uint64_t number = 0, count = 0;  // from 1
  std::string ending;                   // ".safetensors"

  std::string text() const;   // with five digits each, or as many as it takes
  std::string whole() const;  // "model.safetensors"
};

// Nothing for a name of another kind. Any number of digits will do, and the number may be larger than the count.
std::optional<ShardName> parse_shard_name(std::string_view name);

// The same for names that are spelled as text() spells them, and whose numbers make sense.
std::optional<ShardName> parse_usual_shard_name(std::string_view name);

// The name of the whole that a file with a usual name is a shard or the index of; of another file, its own.
std::string whole_of(std::string_view name);

}  // namespace ballast
