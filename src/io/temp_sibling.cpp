#include "io/temp_sibling.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

namespace ballast::io {
namespace {

constexpr std::string_view kMiddle = ".ballast-", kSuffix = ".tmp";
constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";  // 5 bits each
constexpr std::size_t kRandomLength = 8, kHexLength = 16, kKeptLength = 3 * kHexLength + 2;

// ".NAME.ballast-". If the whole name would be longer than a name may be, NAME is cut at a character boundary, and a
// hash of NAME tells apart shards whose numbers are cut off.
std::string temp_prefix(std::string_view name) {
  constexpr std::size_t kRoom = NAME_MAX - 1 - kMiddle.size() - kKeptLength - kSuffix.size();
  if (name.size() <= kRoom) return fmt::format(".{}{}", name, kMiddle);
  std::size_t keep = kRoom - kHexLength - 1;
  for (int i = 0; i < 3 && (static_cast<unsigned char>(name[keep]) & 0xC0) == 0x80; ++i) --keep;
  return fmt::format(".{}~{:016x}{}", name.substr(0, keep), XXH3_64bits(name.data(), name.size()), kMiddle);
}

std::string random_letters() {
  std::array<unsigned char, kRandomLength> random;
  if (retry([&] { return getrandom(random.data(), random.size(), 0); }) != static_cast<ssize_t>(random.size()))
    throw system_error("no random name for a temporary file is to be had", errno);
  std::string letters;
  for (const unsigned char byte : random) letters += kAlphabet[byte % kAlphabet.size()];
  return letters;
}

// ".NAME.ballast-XXXXXXXX.tmp" or ".NAME.ballast-KEY-MARK-STAMP.tmp", taken apart.
struct TempName {
  std::string_view prefix;  // with the dash
  std::string_view key;     // empty: not kept
  std::uint64_t mark = 0, stamp = 0;
};

bool consists_of(std::string_view text, std::string_view alphabet) {
  return text.find_first_not_of(alphabet) == std::string_view::npos;
}

std::optional<TempName> parse_temp_name(std::string_view entry) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::size_t middle = entry.rfind(kMiddle);
  if (!entry.starts_with('.') || !entry.ends_with(kSuffix) || middle == std::string_view::npos) return std::nullopt;
  TempName name{entry.substr(0, middle + kMiddle.size()), {}};
  std::string_view rest = entry.substr(name.prefix.size());
  if (rest.size() < kSuffix.size()) return std::nullopt;
  rest.remove_suffix(kSuffix.size());
  if (rest.size() == kRandomLength && consists_of(rest, kAlphabet)) return name;
  if (rest.size() != kKeptLength || rest[kHexLength] != '-' || rest[2 * kHexLength + 1] != '-') return std::nullopt;
  name.key = rest.substr(0, kHexLength);
  const std::string_view mark = rest.substr(kHexLength + 1, kHexLength), stamp = rest.substr(2 * kHexLength + 2);
  if (!consists_of(name.key, kHex) || !consists_of(mark, kHex) || !consists_of(stamp, kHex)) return std::nullopt;
  std::from_chars(mark.data(), mark.data() + mark.size(), name.mark, 16);
  std::from_chars(stamp.data(), stamp.data() + stamp.size(), name.stamp, 16);
  return name;
}

// A number for the file as it is now (inode, size, time of the last write) and for this run of the system. Nothing if
// the system does not tell its runs apart.
std::optional<std::uint64_t> stamp_of(const struct stat& file) {
  const std::string boot = run_of_the_system();
  if (boot.empty()) return std::nullopt;
  const std::array<std::uint64_t, 5> facts = {
      static_cast<std::uint64_t>(file.st_dev), static_cast<std::uint64_t>(file.st_ino),
      static_cast<std::uint64_t>(file.st_size), static_cast<std::uint64_t>(file.st_mtim.tv_sec),
      static_cast<std::uint64_t>(file.st_mtim.tv_nsec)};
  const std::uint64_t run = XXH3_64bits(boot.data(), boot.size());
  return XXH3_64bits_withSeed(facts.data(), sizeof facts, run);
}

// The NAME of a temporary file, from its prefix. It may be cut: see temp_prefix().
std::string_view name_in(std::string_view prefix) { return prefix.substr(1, prefix.size() - 1 - kMiddle.size()); }

bool is_locking_unsupported(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
}

// Removes a file whose lock nobody holds, since a living writer holds it. A file that cannot be opened or locked stays.
void remove_if_abandoned(int folder, const char* entry) {
  const UniqueFd fd(openat(folder, entry, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found = {};
  if (!fd || fstat(fd.get(), &found) != 0 || !S_ISREG(found.st_mode)) return;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) unlinkat(folder, entry, 0);
}

std::vector<std::string> list_temp_names(int folder) {
  std::vector<std::string> names;
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(own), closedir);
  if (!listing) {
    close(own);
    return names;
  }
  while (const dirent* entry = readdir(listing.get())) {
    if (parse_temp_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

TempSibling::TempSibling(int folder, std::string name, mode_t mode, std::string key, WholeOf whole_of)
    : folder_(folder), name_(std::move(name)), key_(std::move(key)) {
  const std::string prefix = temp_prefix(name_);
  const auto whole = [&](std::string_view of) {
    return whole_of == nullptr ? std::string(name_in(of)) : whole_of(name_in(of));
  };
  for (const std::string& entry : list_temp_names(folder_)) {
    const auto temp = parse_temp_name(entry);
    const bool is_of_this_job = !key_.empty() && temp->key == key_;
    if (is_of_this_job && temp->prefix == prefix && try_to_take_over(entry)) return;
    const bool is_in_the_way = is_of_this_job && temp->prefix == prefix;  // but cannot be trusted
    if (is_in_the_way || (!is_of_this_job && whole(temp->prefix) == whole(prefix)))
      remove_if_abandoned(folder_, entry.c_str());
  }

  // A second try is needed if 40 random bits give the name of an existing file, or if a sweeper came between the
  // creation of the file and its lock; many failures in a row mean that something is wrong.
  for (int attempt = 0; attempt < 100; ++attempt) {
    temp_name_ = fmt::format("{}{}{}", prefix, random_letters(), kSuffix);
    if (try_to_create(mode)) return;
  }
  throw Error(Errc::io, "no temporary file could be created beside it");
}

bool TempSibling::try_to_create(mode_t mode) {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  fd_ = UniqueFd(retry([&] { return openat(folder_, temp_name_.c_str(), flags, mode); }));
  if (!fd_ && errno == EEXIST) return false;
  if (!fd_) throw system_error("cannot be created", errno);

  if (retry([&] { return flock(fd_.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno == EWOULDBLOCK) return false;  // a sweeper has the lock, and removes the file
    if (!is_locking_unsupported(errno)) {
      const int error = errno;
      unlinkat(folder_, temp_name_.c_str(), 0);
      throw system_error("cannot be locked while it is written", error);
    }
  }
  struct stat created = {};
  return fstat(fd_.get(), &created) != 0 || created.st_nlink != 0;  // 0: a sweeper removed it
}

// Anybody who may write to the folder could have put the file there, so it must belong to us alone.
bool TempSibling::try_to_take_over(const std::string& entry) {
  UniqueFd fd(openat(folder_, entry.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found = {}, now = {};
  if (!fd || fstat(fd.get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  if (found.st_uid != geteuid() || found.st_nlink != 1 || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return false;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;  // its writer is alive
  if (fstatat(folder_, entry.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 || now.st_ino != found.st_ino) return false;
  const TempName name = *parse_temp_name(entry);
  fd_ = std::move(fd);
  temp_name_ = entry;
  kept_mark_ = name.mark;
  is_untouched_ = stamp_of(found) == name.stamp;
  is_kept_ = true;
  return true;
}

void TempSibling::begin_anew() {
  if (!is_kept_) return;
  const std::string other = fmt::format("{}{}{}", temp_prefix(name_), random_letters(), kSuffix);
  if (renameat(folder_, temp_name_.c_str(), folder_, other.c_str()) != 0)
    throw system_error("cannot be written anew", errno);
  temp_name_ = other;
  is_kept_ = is_untouched_ = false;
}

bool TempSibling::leave_to_next_run() {
  if (is_kept_) temp_name_.clear();
  return is_kept_;
}

void TempSibling::keep(std::uint64_t mark) {
  struct stat now = {};
  const auto stamp = fstat(fd_.get(), &now) == 0 ? stamp_of(now) : std::nullopt;
  const std::string kept =
      fmt::format("{}{}-{:016x}-{:016x}{}", temp_prefix(name_), key_, mark, stamp.value_or(0), kSuffix);
  // Another run that does the same at this moment may have been first. Its file is not ours, so our file keeps its own
  // name and will not be there for another run.
  const std::string own = std::exchange(temp_name_, kept);
  is_kept_ = renameat2(folder_, own.c_str(), folder_, kept.c_str(), RENAME_NOREPLACE) == 0;
  if (is_kept_) return;
  const bool is_supported = errno != EINVAL && errno != ENOSYS;
  if (!is_supported && linkat(folder_, own.c_str(), folder_, kept.c_str(), 0) == 0) {
    unlinkat(folder_, own.c_str(), 0);
    is_kept_ = true;
    return;
  }
  temp_name_ = own;
  if (is_supported && errno != EEXIST) throw system_error("cannot be kept for another run", errno);
}

TempSibling::~TempSibling() {
  // The lock is still held here.
  if (!temp_name_.empty()) unlinkat(folder_, temp_name_.c_str(), 0);
}

void TempSibling::publish_over() {
  if (renameat(folder_, temp_name_.c_str(), folder_, name_.c_str()) != 0)
    throw system_error("cannot be given its name", errno);
  temp_name_.clear();
}

bool TempSibling::publish_new() {
  int result = renameat2(folder_, temp_name_.c_str(), folder_, name_.c_str(), RENAME_NOREPLACE);
  const bool is_supported = result == 0 || (errno != EINVAL && errno != ENOSYS);
  if (is_supported) {
    if (result == 0) temp_name_.clear();
    if (result != 0 && errno != EEXIST) throw system_error("cannot be given its name", errno);
    return result == 0;
  }
  // NFS and others do not support the flag; a hard link never replaces anything either. The destructor then removes the
  // first name.
  if (linkat(folder_, temp_name_.c_str(), folder_, name_.c_str(), 0) == 0) return true;
  if (errno == EEXIST) return false;

  // FAT supports neither, so another program can take the name between the check and the rename.
  if (faccessat(folder_, name_.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return false;
  publish_over();
  return true;
}

}  // namespace ballast::io
