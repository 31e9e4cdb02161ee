// The conversion cache: a checkpoint that cannot be used as it lies is converted once to safetensors, and used in that
// form from then on.
//
// A cache is a hidden file beside its checkpoint. If that folder cannot be written, or if others can write to it, the
// cache lies under cache_folder(). open() uses a cache that is valid (see Cache in open_options.hpp) and makes one only
// if it is asked to.
//
// The functions may be called from several threads at once; what they return owns everything in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ballast {

struct CacheEntry {
  std::string path;    // of the cache
  std::string source;  // the checkpoint that it was made from, as an absolute path
  std::uint64_t bytes = 0;
  bool is_valid = false;  // open() would use it
  std::string why_not;    // "the source is gone", ...
};

// $XDG_CACHE_HOME/ballast, or ~/.cache/ballast; empty if the environment names neither.
std::string cache_folder();

// Where the cache of a target lies or would lie; empty if there can be none.
std::string cache_path(const std::string& target);

// All caches that this user has made and that are still there, sorted by source.
std::vector<CacheEntry> list_cache();

// Removes the caches of `targets`, or all caches; returns those that it removed.
std::vector<CacheEntry> clear_cache(const std::vector<std::string>& targets = {});

}  // namespace ballast
