#include "io/patch_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include <xxhash.h>

#include "io/open_file.hpp"
#include "io/posix.hpp"

namespace ballast::io {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kBlock = 4096;

std::string undo_path(const std::string& path) {
  const std::filesystem::path file(path);
  return (file.parent_path() / ("." + file.filename().string() + ".ballast-undo")).string();
}

UniqueFd open_to_write(const std::string& path) {
  UniqueFd fd(retry([&] { return open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
  if (!fd) throw system_error("cannot be opened for writing", errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(Errc::io, "is being edited by another program").hint("try again when it is done");
  return fd;
}

void write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (const int error = write_all_at(fd, offset, bytes)) throw system_error("cannot be written", error);
}

// Nothing if the file ends before.
std::optional<Bytes> read_at(int fd, std::uint64_t offset, std::uint64_t size) {
  Bytes bytes(size);
  std::size_t done = 0;
  if (const int error = read_all_at(fd, offset, bytes, done)) throw system_error("cannot be read", error);
  if (done < size) return std::nullopt;
  return bytes;
}

void sync(int fd) {
  if (retry([&] { return fsync(fd); }) != 0) throw system_error("cannot be synced", errno);
}

void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const UniqueFd fd(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) static_cast<void>(fsync(fd.get()));
}

// Which bytes of which file are to be changed. The undo file begins with these values as they lie in memory; the two
// versions and a hash of everything follow.
struct Change {
  static constexpr std::uint64_t kMagic = 0x6F646E752D6C6C62;
  std::uint64_t magic = kMagic, device = 0, inode = 0, file_bytes = 0;
  std::uint64_t offset = 0, size = 0;
};

Change change_of(int fd, std::uint64_t offset, std::uint64_t size) {
  struct stat file = {};
  if (fstat(fd, &file) != 0) throw system_error("cannot be examined", errno);
  return {Change::kMagic, file.st_dev, file.st_ino, static_cast<std::uint64_t>(file.st_size), offset, size};
}

// Both versions, put aside for as long as the file may be a mixture of them.
class Undo {
 public:
  Undo(const std::string& path, const Change& change, std::span<const std::byte> before,
       std::span<const std::byte> after, bool durable)
      : path_(undo_path(path)) {
    Bytes content(sizeof change);
    std::memcpy(content.data(), &change, sizeof change);
    content.insert(content.end(), before.begin(), before.end());
    content.insert(content.end(), after.begin(), after.end());
    const std::uint64_t hash = XXH3_64bits(content.data(), content.size());
    const auto hash_bytes = std::as_bytes(std::span(&hash, 1));
    content.insert(content.end(), hash_bytes.begin(), hash_bytes.end());

    const UniqueFd fd(retry([&] { return open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); }));
    if (!fd) throw system_error("the old header cannot be put aside", errno);
    try {
      write_at(fd.get(), 0, content);
      if (durable) sync(fd.get());
      if (durable) sync_folder_of(path_);
    } catch (...) {
      unlink(path_.c_str());
      throw;
    }
  }

  void remove() const { unlink(path_.c_str()); }

 private:
  std::string path_;
};

struct Saved {
  Change change;
  Bytes before, after;
};

// Nothing if the undo file is not whole or not ours: then the change that it is for was never begun.
std::optional<Saved> read_undo(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat found = {};
  if (!fd || fstat(fd.get(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  if (found.st_uid != geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(found.st_size);
  std::uint64_t hash = 0;
  Saved saved;
  if (size < sizeof saved.change + sizeof hash) return std::nullopt;
  const auto content = read_at(fd.get(), 0, size);
  if (!content) return std::nullopt;
  std::memcpy(&saved.change, content->data(), sizeof saved.change);
  const std::uint64_t versions = size - sizeof saved.change - sizeof hash;
  if (saved.change.magic != Change::kMagic || versions % 2 != 0 || saved.change.size != versions / 2)
    return std::nullopt;
  std::memcpy(&hash, content->data() + size - sizeof hash, sizeof hash);
  if (hash != XXH3_64bits(content->data(), size - sizeof hash)) return std::nullopt;
  const auto before = content->begin() + sizeof saved.change;
  const auto after = before + static_cast<std::ptrdiff_t>(saved.change.size);
  saved.before.assign(before, after);
  saved.after.assign(after, after + static_cast<std::ptrdiff_t>(saved.change.size));
  return saved;
}

// Whether each block is that of one version or that of the other.
bool is_mixture(const Bytes& now, const Saved& saved) {
  for (std::uint64_t at = 0; at < now.size();) {
    const std::uint64_t n = std::min(kBlock - (saved.change.offset + at) % kBlock, now.size() - at);
    const auto same = [&](const Bytes& version) { return std::memcmp(&now[at], &version[at], n) == 0; };
    if (!same(saved.before) && !same(saved.after)) return false;
    at += n;
  }
  return true;
}

}  // namespace

bool has_one_name(const std::string& path) {
  struct stat file = {};
  return lstat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1;
}

void patch_file(const Source& source, std::span<const std::byte> bytes, bool durable) try {
  const UniqueFd fd = open_to_write(source.name());
  const auto opened = source.location(0);
  struct stat then = {}, now = {};
  if (!opened || fstat(descriptor_of(*opened), &then) != 0 || fstat(fd.get(), &now) != 0 || then.st_dev != now.st_dev ||
      then.st_ino != now.st_ino)
    throw Error(Errc::changed, "was replaced while it was edited").hint("nothing was changed; try again");
  source.check_unchanged();

  const auto before = read_at(fd.get(), 0, bytes.size());
  if (!before) throw Error(Errc::changed, "became shorter while it was edited");
  const auto first = static_cast<std::uint64_t>(std::ranges::mismatch(*before, bytes).in1 - before->begin());
  if (first == bytes.size()) return;
  std::uint64_t last = bytes.size();
  while ((*before)[last - 1] == bytes[last - 1]) --last;

  const std::uint64_t size = last - first;
  std::optional<Undo> undo;
  if (first / kBlock != (last - 1) / kBlock)
    undo.emplace(source.name(), change_of(fd.get(), first, size), std::span(*before).subspan(first, size),
                 bytes.subspan(first, size), durable);
  try {
    write_at(fd.get(), first, bytes.subspan(first, size));
    if (durable) sync(fd.get());
  } catch (const Error&) {
    write_at(fd.get(), first, std::span(*before).subspan(first, size));
    if (undo) undo->remove();
    throw;
  }
  if (undo) undo->remove();
} catch (Error& error) {
  throw error.in(source.name());
}

bool has_cut_off_patch(const std::string& path) { return is_name_taken(undo_path(path)); }

void undo_cut_off_patch(const std::string& path) try {
  if (!has_cut_off_patch(path)) return;
  const UniqueFd fd = open_to_write(path);  // fails at once if another program is editing the file
  const auto saved = read_undo(undo_path(path));
  if (saved) {
    const Change here = change_of(fd.get(), saved->change.offset, saved->change.size);
    const auto now = read_at(fd.get(), here.offset, here.size);
    const bool is_same_file = std::memcmp(&here, &saved->change, sizeof here) == 0;
    if (is_same_file && now && is_mixture(*now, *saved)) {
      write_at(fd.get(), here.offset, saved->before);
      sync(fd.get());
    }
  }
  unlink(undo_path(path).c_str());
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast::io
