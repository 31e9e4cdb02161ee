#include "io/temp_sibling.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ballast::io {
namespace {

constexpr std::string_view kMiddle = ".ballast-", kSuffix = ".tmp";
constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";  // 5 bits each
constexpr std::size_t kRandomLength = 8;

// ".NAME.ballast-", with NAME cut at a character where the whole would be longer than a name may be.
std::string temp_prefix(std::string_view name) {
  constexpr std::size_t kRoom = NAME_MAX - 1 - kMiddle.size() - kRandomLength - kSuffix.size();
  std::size_t keep = std::min(name.size(), kRoom);
  while (keep < name.size() && keep > kRoom - 3 && (static_cast<unsigned char>(name[keep]) & 0xC0) == 0x80) --keep;
  return fmt::format(".{}{}", name.substr(0, keep), kMiddle);
}

std::string random_letters() {
  std::array<unsigned char, kRandomLength> random;
  if (retry([&] { return getrandom(random.data(), random.size(), 0); }) != static_cast<ssize_t>(random.size()))
    throw system_error("no random name for a temporary file is to be had", errno);
  std::string letters;
  for (const unsigned char byte : random) letters += kAlphabet[byte % kAlphabet.size()];
  return letters;
}

bool is_temp_of(std::string_view entry, std::string_view prefix) {
  if (entry.size() != prefix.size() + kRandomLength + kSuffix.size()) return false;
  return entry.starts_with(prefix) && entry.ends_with(kSuffix) &&
         entry.substr(prefix.size(), kRandomLength).find_first_not_of(kAlphabet) == std::string_view::npos;
}

bool is_locking_unsupported(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
}

// Whoever holds the lock is alive. A file that cannot be opened or locked is none of our business.
void remove_if_abandoned(int folder, const char* entry) {
  const UniqueFd fd(openat(folder, entry, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found = {};
  if (!fd || fstat(fd.get(), &found) != 0 || !S_ISREG(found.st_mode)) return;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) unlinkat(folder, entry, 0);
}

void sweep(int folder, std::string_view prefix) {
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(own), closedir);
  if (!listing) {
    close(own);
    return;
  }
  while (const dirent* entry = readdir(listing.get()))
    if (is_temp_of(entry->d_name, prefix)) remove_if_abandoned(folder, entry->d_name);
}

}  // namespace

TempSibling::TempSibling(int folder, std::string name, mode_t mode) : folder_(folder), name_(std::move(name)) {
  const std::string prefix = temp_prefix(name_);
  sweep(folder_, prefix);

  // A second try is needed where 40 random bits meet a file that is there already, or a sweeper that came between the
  // creation of the file and its lock; many in a row mean that something is wrong.
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
    if (errno == EWOULDBLOCK) return false;  // a sweeper has it, and removes it
    if (!is_locking_unsupported(errno)) {
      const int error = errno;
      unlinkat(folder_, temp_name_.c_str(), 0);
      throw system_error("cannot be locked while it is written", error);
    }
  }
  struct stat created = {};
  return fstat(fd_.get(), &created) != 0 || created.st_nlink != 0;  // 0: a sweeper had it
}

TempSibling::~TempSibling() {
  // While the lock is still held.
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
  // NFS and others: a hard link never replaces anything either. The destructor then takes away the first name.
  if (linkat(folder_, temp_name_.c_str(), folder_, name_.c_str(), 0) == 0) return true;
  if (errno == EEXIST) return false;

  // FAT has neither, so the name can be taken between the look and the rename.
  if (faccessat(folder_, name_.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return false;
  publish_over();
  return true;
}

}  // namespace ballast::io
