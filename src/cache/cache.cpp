#include "cache/cache.hpp"

#include <sys/stat.h>
#include <ballast/cache.hpp>
#include <ballast/error.hpp>
#include <ballast/save.hpp>
#include <ballast/scan.hpp>

#include <algorithm>
#include <ctime>
#include <utility>

#include "cache/conversion_lock.hpp"
#include "cache/identity.hpp"
#include "cache/location.hpp"
#include "cache/record.hpp"
#include "cache/seal.hpp"
#include "cache/tensors.hpp"
#include "cache/user_secret.hpp"
#include "checkpoint/open_whole.hpp"
#include "core/text.hpp"
#include "io/posix.hpp"
#include "tensor/transformed_storage.hpp"

namespace ballast {
namespace {

// Throws Errc::mismatch, or whatever is wrong with the file, if the cache cannot be used.
Checkpoint read_cache(const std::string& path, const std::string& target, const OpenOptions& options) {
  const CacheFile file = examine_cache(path, target);
  const auto secret = read_user_secret();
  if (!secret) throw Error(Errc::mismatch, "was not made by this user, who has no key");
  check_seal(path, *secret);
  const Checkpoint stored = open_whole(path, {.limits = options.limits, .threads = 1});
  const auto text = stored.metadata.find(kCacheMetadataKey);
  if (text == stored.metadata.end()) throw Error(Errc::mismatch, "is not a conversion cache");
  CacheRecord record = decode_cache_record(text->second, target);
  if (file.modified_s != record.modified_s || file.modified_ns != 0)
    throw Error(Errc::mismatch, "was changed after it was made, or never finished");
  check_key(record.key, target, options);
  record.checkpoint.tensors = from_stored(stored.tensors, record.tensors, std::move(record.names));
  return std::move(record.checkpoint);
}

// Whether as<T>() gives all values in place.
bool is_usable_as_it_lies(const Tensor& tensor) {
  if (tensor.nbytes() == 0 || !tensor.has_data()) return true;
  if (!tensor.is_contiguous() || tensor.storage()->is_sequential() || !tensor.is_mapped()) return false;
  if (info(tensor.dtype()).block_elements != 1) return true;  // blocks are read byte by byte
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes().data());
  return address % swapped_bytes(tensor.dtype()) == 0;
}

bool is_worth_caching(const Checkpoint& checkpoint, Cache cache) {
  const bool is_asked_for = cache == Cache::automatic || cache == Cache::always;
  if (!is_asked_for || checkpoint.format == Format::safetensors) return false;
  if (cache == Cache::always || checkpoint.format == Format::torch_tar) return true;
  return !std::ranges::all_of(checkpoint,
                              [](const StateDict::Entry& entry) { return is_usable_as_it_lies(entry.tensor); });
}

// A cache does not keep dangerous names, so after a conversion nobody would be warned of them any more.
void refuse_to_forget(const Checkpoint& checkpoint) { refuse_dangerous(checkpoint); }

// A cache must not be readable for anybody who cannot read its sources.
mode_t permissions_for(const Checkpoint& checkpoint) {
  const auto is_public = [](const CheckpointFile& file) {
    struct stat found = {};
    return stat(file.path.c_str(), &found) == 0 && (found.st_mode & S_IROTH) != 0;
  };
  return std::ranges::all_of(checkpoint.files, is_public) ? 0644 : 0600;
}

// Some seconds ago, so that no file that is written now gets this time by itself; and even, because FAT stores only
// even seconds.
std::int64_t stamp() { return (std::int64_t{std::time(nullptr)} - 10) / 2 * 2; }

SaveOptions save_options(const OpenOptions& options) {
  SaveOptions save;
  save.overwrite = true;
  save.allow_empty = true;  // a pickle that holds only values is worth a cache, too
  save.compress = options.compress_cache;
  save.strict = true;  // else a wrong checksum in the source would be forgotten
  save.threads = options.threads;
  save.limits = options.limits;
  save.progress = options.progress;
  return save;
}

// The key must list all files that were read, or a later open() could not tell that one of them has changed.
void check_sources(const CacheKey& key, const Checkpoint& checkpoint, const std::string& target) {
  const auto path = [&](const SourceIdentity& source) { return path_of_source(target, source.name); };
  if (!std::ranges::equal(key.sources, checkpoint.files, {}, path, &CheckpointFile::path))
    throw Error(Errc::unsupported, "it consists of other files than its name says").in(target);
}

// The files must be the same before they are opened and after they are read: only then were these files read.
void convert(const std::string& target, const std::string& place, const UserSecret& secret,
             const OpenOptions& options) {
  CacheRecord record;
  record.key = key_of(target, options);
  record.modified_s = stamp();
  record.checkpoint = open_whole(target, options);
  check_sources(record.key, record.checkpoint, target);
  StoredTensors stored = to_stored(record.checkpoint.tensors);
  record.tensors = std::move(stored.recorded);

  Checkpoint plain;
  plain.tensors = std::move(stored.tensors);
  plain.metadata.emplace(kCacheMetadataKey, encode_cache_record(record, target));
  plain.metadata.emplace(kSealKey, blank_seal());
  register_cache(place, target);
  NewCache cache(place, permissions_for(record.checkpoint));
  save(plain, place, save_options(options));
  if (key_of(target, options) != record.key)
    throw Error(Errc::changed, "the file was changed while it was being read").in(target);
  seal_cache(place, secret);
  cache.publish(record.modified_s);
  register_cache(place, target);  // again: list_cache() may have found no cache meanwhile and removed the entry
}

Checkpoint converted(const std::string& target, const Checkpoint& original, const OpenOptions& options) {
  refuse_to_forget(original);
  const std::string place = place_for_cache(target, true);
  if (place.empty())
    throw Error(Errc::unsupported, "there is no folder for it that this user, and nobody else, can write to");
  const UserSecret secret = make_user_secret();
  const ConversionLock lock(target, options.progress);
  if (auto made_meanwhile = open_cached(target, options)) return std::move(*made_meanwhile);
  convert(target, place, secret, options);
  return read_cache(place, target, options);
}

CacheEntry examine(const RegisteredCache& cache) {
  CacheEntry entry{.path = cache.path, .source = cache.source, .why_not = {}};
  struct stat found = {};
  if (lstat(cache.path.c_str(), &found) == 0) entry.bytes = static_cast<std::uint64_t>(found.st_size);
  try {
    static_cast<void>(read_cache(cache.path, cache.source, {}));
    entry.is_valid = true;
  } catch (const Error& error) {
    entry.why_not = error.message();
  }
  return entry;
}

std::vector<RegisteredCache> caches_of(const std::vector<std::string>& targets) {
  std::vector<RegisteredCache> caches;
  for (const std::string& target : targets) {
    for (const std::string& path : {cache_beside(target), cache_in_folder(target)})
      if (!path.empty()) caches.push_back({path, target});
  }
  return caches;
}

std::optional<Checkpoint> try_cache(const std::string& path, const std::string& target, const OpenOptions& options) {
  if (!io::is_name_taken(path)) return std::nullopt;
  try {
    return read_cache(path, target, options);
  } catch (const Error&) {
    return std::nullopt;  // the original can be used
  }
}

}  // namespace

std::optional<Checkpoint> open_cached(const std::string& target, const OpenOptions& options) {
  if (auto cached = try_cache(cache_beside(target), target, options)) return cached;
  // Most users have no such folder, and then the name of the cache in it need not be computed.
  return io::is_name_taken(cache_folder()) ? try_cache(cache_in_folder(target), target, options) : std::nullopt;
}

Checkpoint make_cache(const std::string& target, Checkpoint original, const OpenOptions& options) try {
  if (!is_worth_caching(original, options.cache)) return original;
  return converted(target, original, options);
} catch (const Error& error) {
  if (error.code() == Errc::cancelled) throw;
  original.notes.push_back({target, std::string("no conversion cache was made: ") + error.what(), Note::Kind::remark});
  return original;
}

std::string cache_path(const std::string& target) {
  for (const std::string& path : {cache_beside(target), cache_in_folder(target)})
    if (io::is_name_taken(path)) return path;
  return place_for_cache(target, false);
}

std::vector<CacheEntry> list_cache() {
  std::vector<CacheEntry> entries;
  for (const RegisteredCache& cache : registered_caches()) entries.push_back(examine(cache));
  return entries;
}

std::vector<CacheEntry> clear_cache(const std::vector<std::string>& targets) {
  std::vector<CacheEntry> removed;
  for (const RegisteredCache& cache : targets.empty() ? registered_caches() : caches_of(targets)) {
    CacheEntry entry = examine(cache);
    if (remove_cache(cache.path)) removed.push_back(std::move(entry));
  }
  return removed;
}

}  // namespace ballast
