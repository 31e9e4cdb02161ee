// What a conversion cache was made of: the key by which a later open() can tell that the cache still fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ballast/open.hpp>

#include "io/identity.hpp"

namespace ballast {

// What tells one file of a checkpoint from any other: what the system says about it, and its own bytes. The device is
// left out: on network file systems, and some others, it gets another number with every mount.
struct SourceIdentity {
  std::string name;  // beside the target, or in it if that is a folder; empty for the target itself
  io::FileIdentity file;
  std::uint64_t ends_digest = 0;  // XXH3 of the first and the last 64 KiB: every format has its metadata there

  friend bool operator==(const SourceIdentity&, const SourceIdentity&) = default;
};

struct CacheKey {
  std::string version;                  // of the library, and of what it makes of a file
  std::uint64_t options_digest = 0;     // of the options that change what is read; the root is applied afterwards
  std::vector<SourceIdentity> sources;  // in the order of Checkpoint::files

  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// The files that open() would read for a target, as the target alone tells: a file, or an index and the shards that it
// names, or the files of a folder; in the order of Checkpoint::files. Throws Errc::unsupported for a safetensors file,
// which never has a cache.
std::vector<std::string> files_of_target(const std::string& target, const OpenOptions& options);

// The key of the target as it is now. Throws Errc::io or Errc::not_found if a file cannot be read, and
// Errc::unsupported if a file lies elsewhere than the target.
CacheKey key_of(const std::string& target, const OpenOptions& options);

// Throws Errc::mismatch with what has changed since the key was made.
void check_key(const CacheKey& key, const std::string& target, const OpenOptions& options);

// The path of a source, spelled as open() would spell it.
std::string path_of_source(const std::string& target, const std::string& name);

}  // namespace ballast
