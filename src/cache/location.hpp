// Where conversion caches lie, whose caches may be used, and how the caches of this user are found again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ballast {

// The two paths where the cache of a target may be, the better one first: a hidden file beside the target if it is a
// file, or in it if it is a folder; and a file under cache_folder(). Empty if the target is neither, or if there is no
// cache_folder().
std::string cache_beside(const std::string& target);
std::string cache_in_folder(const std::string& target);

// Where a new cache goes: beside the target, if this user can write there and others cannot, else under cache_folder().
// Empty if neither is possible. With `make_folder`, cache_folder() exists afterwards.
std::string place_for_cache(const std::string& target, bool make_folder);

// What the system says about a cache that may be used.
struct CacheFile {
  std::uint64_t bytes = 0;
  std::int64_t modified_s = 0, modified_ns = 0;
};

// Checks that the cache is a plain file of this user that nobody else can write to, in such a folder. Throws
// Errc::not_found if there is none, and Errc::mismatch if it cannot be trusted. The seal proves who made the file: see
// seal.hpp.
CacheFile examine_cache(const std::string& path, const std::string& target);

// NewCache: a file that is not a cache yet. It is private while it is written. publish() makes it a cache; without
// that, the destructor removes it.
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

// The register of caches, in cache_folder(): without it, nobody could find caches that lie beside their sources.
struct RegisteredCache {
  std::string path, source;
};
void register_cache(const std::string& path, const std::string& target);
std::vector<RegisteredCache> registered_caches();  // those that are still there, sorted by source

// Removes a cache, its entry, and what a killed conversion has left of it. False if there is no cache.
bool remove_cache(const std::string& path);

}  // namespace ballast
