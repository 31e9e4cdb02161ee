#include <ballast/open.hpp>
#include <ballast/remote.hpp>

#include <utility>

#include "cache/cache.hpp"
#include "checkpoint/open_whole.hpp"

namespace ballast {

Checkpoint open(const std::string& target, const OpenOptions& options) {
  if (const OpenOptions found = options_for(target, options); found.files != options.files) return open(target, found);
  const bool is_cached = options.cache != Cache::ignore && options.files == local_files();
  if (!is_cached) return take_asked_for(open_whole(target, options), options, target);
  auto cached = open_cached(target, options);
  Checkpoint whole = cached ? *std::move(cached) : make_cache(target, open_whole(target, options), options);
  return take_asked_for(std::move(whole), options, target);
}

Checkpoint open(SourcePtr source, const OpenOptions& options) {
  return take_asked_for(open_whole(source, options), options, {});
}

Checkpoint open_bytes(std::vector<std::byte> bytes, const std::string& name, const OpenOptions& options) {
  return open(memory_source(std::move(bytes), name), options);
}

}  // namespace ballast
