#include "cache/location.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ballast/cache.hpp>
#include <ballast/error.hpp>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "cache/user_folders.hpp"
#include "io/posix.hpp"
#include "io/section.hpp"
#include "io/sink.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHiddenName = ".ballast-cache.safetensors";
constexpr std::string_view kCentralEnding = ".safetensors", kRegisterEnding = ".source";
constexpr std::uint64_t kMostRegisterBytes = 64 << 10;

std::string hashed(std::string_view text) { return kernels::to_hex(kernels::xxh3_64(std::as_bytes(std::span(text)))); }

std::optional<struct stat> stat_of(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return found;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Long names are cut; their hashes tell them apart.
std::string hidden_name(const std::string& name) {
  constexpr std::size_t kRoom = NAME_MAX - 1 - kHiddenName.size();
  if (name.size() <= kRoom) return "." + name + std::string(kHiddenName);
  const std::string hash = "~" + hashed(name);
  return "." + name.substr(0, kRoom - hash.size()) + hash + std::string(kHiddenName);
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return fs::canonical(path, ignored).string();
}

bool can_write_into(const std::string& folder) {
  return faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

// The path with the canonical path of its folder, whatever spelling was used.
std::string canonical_place(const std::string& cache) {
  return (fs::path(absolute(folder_of(cache))) / fs::path(cache).filename()).string();
}

std::string register_entry(const std::string& cache) {
  return (fs::path(cache_folder()) / (hashed(cache) + std::string(kRegisterEnding))).string();
}

void forget_cache(const std::string& path) {
  if (cache_folder().empty()) return;
  unlink(register_entry(canonical_place(path)).c_str());
}

// Registered files may be removed one day, so they must have the name of a cache.
bool is_name_of_cache(const fs::path& path) {
  return path.filename().string().ends_with(kHiddenName) ||
         (path.parent_path() == absolute(cache_folder()) && path.extension() == kCentralEnding);
}

std::optional<RegisteredCache> read_register_entry(const std::string& path) try {
  const auto text = io::read_text_file(path, kMostRegisterBytes);
  const std::string_view both = text->view();
  const auto end = both.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  RegisteredCache cache{std::string(both.substr(0, end)), std::string(both.substr(end + 1))};
  return is_name_of_cache(cache.path) ? std::optional(std::move(cache)) : std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

[[noreturn]] void refuse(const char* why) { throw Error(Errc::mismatch, why); }

}  // namespace

std::string cache_beside(const std::string& target) {
  const auto found = stat_of(target);
  if (!found) return "";
  const fs::path path = target;
  if (S_ISDIR(found->st_mode)) return (path / kHiddenName).string();
  return S_ISREG(found->st_mode) ? (path.parent_path() / hidden_name(path.filename().string())).string() : "";
}

std::string cache_in_folder(const std::string& target) {
  const std::string folder = cache_folder(), path = absolute(target);
  if (folder.empty() || path.empty()) return "";
  return (fs::path(folder) / (hashed(path) + std::string(kCentralEnding))).string();
}

std::string place_for_cache(const std::string& target, bool make_folder) {
  std::string beside = cache_beside(target), central = cache_in_folder(target);
  if (beside.empty()) return "";
  if (is_private_folder(folder_of(beside)) && can_write_into(folder_of(beside))) return beside;
  if (central.empty()) return "";
  if (make_folder) make_user_folder(cache_folder());
  const bool will_be_made = !make_folder && !stat_of(cache_folder());
  const bool is_good = is_private_folder(cache_folder()) && can_write_into(cache_folder());
  return will_be_made || is_good ? central : "";
}

CacheFile examine_cache(const std::string& path, const std::string& target) {
  struct stat cache = {};
  if (lstat(path.c_str(), &cache) != 0) throw io::system_error("cannot be examined", errno).in(path);
  if (!stat_of(target)) refuse("the source is gone");
  if (!S_ISREG(cache.st_mode)) refuse("is not a plain file");
  if (cache.st_uid != geteuid()) refuse("belongs to another user");
  if ((cache.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse("others can write to it");
  if (!is_private_folder(folder_of(path))) refuse("others can write to its folder");
  return {static_cast<std::uint64_t>(cache.st_size), cache.st_mtim.tv_sec, cache.st_mtim.tv_nsec};
}

// A file is written under another name first and takes over the permissions of the file that it replaces. So a file
// with the right permissions must be there before the first byte is written.
NewCache::NewCache(std::string path, mode_t mode) : path_(std::move(path)) {
  unlink(path_.c_str());
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const io::UniqueFd fd(io::retry([&] { return ::open(path_.c_str(), flags, mode); }));
  if (!fd) throw io::system_error("cannot be created", errno).in(path_);
}

NewCache::~NewCache() {
  if (!is_published_) unlink(path_.c_str());
}

void NewCache::publish(std::int64_t modified_s) {
  const struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = modified_s, .tv_nsec = 0}};
  if (utimensat(AT_FDCWD, path_.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    throw io::system_error("cannot be given its time", errno).in(path_);
  is_published_ = true;
}

// An error here does no harm: the cache itself is there and can be used.
void register_cache(const std::string& path, const std::string& target) try {
  if (cache_folder().empty()) return;
  make_user_folder(cache_folder());
  const std::string cache = canonical_place(path);
  const std::string text = cache + '\0' + absolute(target);
  const auto sink = io::create_file(register_entry(cache), {.overwrite = true, .durable = false});
  sink->reserve(text.size());
  sink->write_at(0, std::as_bytes(std::span(text)));
  sink->commit();
} catch (const Error&) {
}

std::vector<RegisteredCache> registered_caches() {
  std::vector<RegisteredCache> caches;
  if (!is_private_folder(cache_folder())) return caches;
  std::error_code error;
  for (fs::directory_iterator i(cache_folder(), error), end; !error && i != end; i.increment(error)) {
    if (i->path().extension() != kRegisterEnding) continue;
    auto entry = read_register_entry(i->path().string());
    if (entry && fs::is_regular_file(fs::symlink_status(entry->path, error)))
      caches.push_back(std::move(*entry));
    else if (entry)
      remove_cache(entry->path);
  }
  std::ranges::sort(caches, {}, [](const RegisteredCache& cache) { return std::tie(cache.source, cache.path); });
  return caches;
}

bool remove_cache(const std::string& path) {
  // Creating an output file removes what a killed writer has left there. So one is created here, and never written.
  try {
    static_cast<void>(io::create_file(path, {.overwrite = true, .durable = false}));
  } catch (const Error&) {
    // the folder is gone, or is not ours
  }
  forget_cache(path);
  if (unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw io::system_error("cannot be removed", errno).in(path);
}

}  // namespace ballast
