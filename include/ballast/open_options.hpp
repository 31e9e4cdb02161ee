// OpenOptions: how a checkpoint is opened. A plain value, which shares its `files`. Several threads may read one while
// nobody changes it.
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
  ignore,     // caches are neither looked for nor made
  use,        // a valid cache is used; none is made
  automatic,  // a cache is made if the checkpoint cannot be used as it lies: a tar, deflated, strided, big-endian
  always,     // a cache is made of everything that is not safetensors already
};

struct OpenOptions {
  Limits limits{};
  Safety safety = Safety::inert;
  std::string root{};                 // a subtree of a nested checkpoint ("state_dict"); its prefix is dropped
  std::string variant{};              // of a folder with several: "fp16" takes model.fp16.safetensors
  bool single = false;                // for a split GGUF: open only the file that was named
  bool little_endian_blocks = false;  // for a big-endian GGUF: its blocks are as they would be in a little-endian file
  bool lenient = false;  // forgive errors that real files are known to have (trailing bytes), with a note for each
  // Weights that are kept quantized are given as the numbers that they stand for; see dequantize.hpp.
  bool dequantize = false;
  unsigned threads = 0;  // for many shards, and for making a cache; 0 is one a core
  Cache cache = Cache::use;
  bool compress_cache = false;  // compress a cache that is made, see SaveOptions::compress
  Progress progress{};          // of making a cache
  // The target and the files beside it are opened through these. Only local files have caches.
  FilesPtr files = local_files();
  FilesPtr remote{};  // and through these, if the target is an address and `files` are the local ones; see remote.hpp
  bool checks_end = true;  // of a remote file: whether its end is read, too, to be sure that the file has one meaning
};

}  // namespace ballast
