// The conversion cache: checkpoints that cannot be used as they lie, converted once to safetensors and used from then
// on.
//
// A cache lies beside its checkpoint, as a hidden file, or under cache_folder() where that folder cannot be written or
// others can write to it. open() uses one that is valid (see Cache in open.hpp) and makes one only when asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ballast {

struct CacheEntry {
  std::string path;    // of the cache
  std::string source;  // what it was made of, as an absolute path
  std::uint64_t bytes = 0;
  bool is_valid = false;  // open() would use it
  std::string why_not;    // "the source is gone", ...
};

// $XDG_CACHE_HOME/ballast, or ~/.cache/ballast; empty where the environment names neither.
std::string cache_folder();

// Where the cache of a target lies or would lie; empty where none can be.
std::string cache_path(const std::string& target);

// All that this user has made and that are still there, by source.
std::vector<CacheEntry> list_cache();

// Removes those of `targets`, or all; says which.
std::vector<CacheEntry> clear_cache(const std::vector<std::string>& targets = {});

}  // namespace ballast
