// OpenOptions: how a checkpoint is opened. A plain value.
#pragma once

#include <cstdint>
#include <string>

#include <ballast/global.hpp>
#include <ballast/limits.hpp>
#include <ballast/progress.hpp>
#include <ballast/source.hpp>

namespace ballast {

// The conversion cache (cache.hpp): a copy, as safetensors, of a checkpoint that is slow to use.
enum class Cache : std::uint8_t {
  ignore,     // neither looked for nor made
  use,        // a valid one that is there is used; none is made
  automatic,  // one is made where the checkpoint cannot be used as it lies: a tar, deflated, strided, big-endian
  always,     // one is made of everything that is not safetensors already
};

struct OpenOptions {
  Limits limits{};
  Safety safety = Safety::inert;
  std::string root{};                 // a subtree of a nested checkpoint ("state_dict"); its prefix is dropped
  bool single = false;                // of a split GGUF, only the part that was named
  bool little_endian_blocks = false;  // of a big-endian GGUF: its blocks are as they would be in a little-endian one
  bool lenient = false;  // forgive what real files are known to get wrong (trailing bytes), with a note for each
  unsigned threads = 0;  // for many shards, and for making a cache; 0 is one a core
  Cache cache = Cache::use;
  bool compress_cache = false;  // the cache that is made, see SaveOptions::compress
  Progress progress{};          // of making a cache
  // What the target and the files beside it are opened through. Only local files have caches.
  FilesPtr files = local_files();
};

}  // namespace ballast
