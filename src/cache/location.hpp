// Where conversion caches lie, whom they may come from, and how this user's are found again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ballast {

// The two places where the cache of a target may be, the better first: a hidden file beside a file, or in a folder; and
// a file under cache_folder(). Empty where the target is neither, or there is no such folder to be named.
std::string cache_beside(const std::string& target);
std::string cache_in_folder(const std::string& target);

// Where a new cache goes: beside, if this user can write there and others cannot, else central. Empty where neither
// will do. With `make_folder` the central folder is there afterwards.
std::string place_for_cache(const std::string& target, bool make_folder);

// What the system says of a cache that may be used.
struct CacheFile {
  std::uint64_t bytes = 0;
  std::int64_t modified_s = 0, modified_ns = 0;
};

// A plain file of this user that nobody else can write to, in such a folder. Throws Errc::not_found if there is none,
// and Errc::mismatch if it is not to be trusted. Who made the file is proved by its seal: see cache_seal.hpp.
CacheFile examine_cache(const std::string& path, const std::string& target);

// NewCache: a file that is no cache yet. While it is written it is private; it becomes a cache by publish(), and
// without that goes away.
class NewCache {
 public:
  NewCache(std::string path, mode_t mode);
  ~NewCache();
  NewCache(const NewCache&) = delete;
  NewCache& operator=(const NewCache&) = delete;

  const std::string& path() const noexcept { return path_; }
  void publish(std::int64_t modified_s);  // a cache is valid only with the time that its record says

 private:
  std::string path_;
  bool is_published_ = false;
};

// The register of caches, in cache_folder(): without it, nobody could find those that lie beside their sources.
struct RegisteredCache {
  std::string path, source;
};
void register_cache(const std::string& path, const std::string& target);
std::vector<RegisteredCache> registered_caches();  // those that are still there, by source

// Removes a cache, what a conversion to it that was killed has left, and the entry. False where there is none.
bool remove_cache(const std::string& path);

}  // namespace ballast
