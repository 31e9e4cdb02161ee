// The file that appears under its name whole or not at all.
//
// Everything is written to a locked sibling (temp_sibling.hpp), synced, and renamed. So a reader or a map of the old
// file keeps the old bytes, even if the new file is made from the old one; and a crash at any point leaves the old file
// or the new one. If the name is a symbolic link, the link itself is replaced and the file that it points to is left
// alone. (A nameless O_TMPFILE would need no sweeping, but it cannot be given a name that is taken.)

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "io/posix.hpp"
#include "io/sink.hpp"
#include "io/temp_sibling.hpp"
#include "io/written_file.hpp"

namespace ballast::io {
namespace {

constexpr std::uint64_t kSharedBlock = 4096;  // block size of file systems that share; those with larger blocks refuse

struct Destination {
  std::string folder;
  std::string name;
};

Destination split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  Destination to{.folder = ".", .name = path};
  if (slash != std::string::npos) to = {.folder = path.substr(0, slash + 1), .name = path.substr(slash + 1)};
  if (to.name.empty() || to.name == "." || to.name == "..")
    throw Error(Errc::invalid_argument, path.empty() ? "the output has no name" : "is a directory, not a file")
        .in(path);
  return to;
}

Error already_exists() {
  return Error(Errc::invalid_argument, "already exists")
      .of_system(EEXIST)
      .hint(mention(Remedy::overwrite) + " overwrites it");
}

UniqueFd open_folder(const std::string& folder) {
  UniqueFd fd(retry([&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (fd) return fd;
  const bool is_missing = errno == ENOENT;
  Error failure = system_error("its folder cannot be opened", errno);
  if (is_missing) failure.hint("create the folder first");
  throw failure;
}

// The mode that open() makes of 0666 in this folder. Asking for the umask is not possible without changing it. Nothing
// if the file system has no files without names.
std::optional<mode_t> mode_of_a_new_file(int folder) {
  const UniqueFd probe(openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  struct stat made = {};
  if (!probe || fstat(probe.get(), &made) != 0) return std::nullopt;
  return made.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
}

// The permissions of the file that is to be replaced; nothing if there is no such file, or only a link to one.
std::optional<mode_t> examine_destination(int folder, const std::string& name, bool overwrite) {
  struct stat here = {}, target = {};
  if (fstatat(folder, name.c_str(), &here, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw system_error("cannot be examined", errno);
  }
  // A link is followed only to refuse what must not be replaced: /dev/stdout is one.
  if (fstatat(folder, name.c_str(), &target, 0) == 0 && !S_ISREG(target.st_mode))
    throw Error(Errc::invalid_argument, fmt::format("is {}, not a file", kind_of_file(target.st_mode)));
  if (!overwrite) throw already_exists();
  if (!S_ISREG(here.st_mode)) return std::nullopt;
  return here.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
}

// FAT and similar file systems refuse to change permissions even to the owner of a file. They have no permissions to
// keep.
bool is_without_permissions(int error) { return error == EPERM || error == EOPNOTSUPP || error == ENOSYS; }

class AtomicFile final : public WrittenFile {
 public:
  AtomicFile(const std::string& path, const OutputOptions& options) : AtomicFile(path, split(path), options) {}

  void reserve(std::uint64_t size_bytes) override {
    size_ = size_bytes;
    temp_.begin_anew();
    if (size_bytes == 0) return;
    // Not posix_fallocate: if the file system cannot allocate, glibc would write to every block.
    const auto size = static_cast<off_t>(size_bytes);
    if (size < 0) throw failure_to_write(EFBIG);
    int result = retry([&] { return fallocate(temp_.fd(), 0, 0, size); });
    if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
      result = retry([&] { return ftruncate(temp_.fd(), size); });
    if (result != 0) throw failure_to_write(errno);
    // A file that was taken over may have been longer.
    if (temp_.kept_mark() && retry([&] { return ftruncate(temp_.fd(), size); }) != 0) throw failure_to_write(errno);
  }

  bool resume(std::uint64_t size_bytes, std::uint64_t record_bytes) override {
    struct stat here = {};
    const bool is_continued = temp_.kept_mark() == kUnfinished && fstat(temp_.fd(), &here) == 0 &&
                              static_cast<std::uint64_t>(here.st_size) == size_bytes + record_bytes;
    if (is_continued) {
      size_ = size_bytes;
    } else {
      reserve(size_bytes + record_bytes);
      size_ = size_bytes;
      if (!options_.key.empty()) temp_.keep(kUnfinished);
    }
    has_record_ = true;
    return is_continued;
  }

  // Shares whole blocks, and only if the range has the same offset inside a block in both files.
  ByteRange share(int descriptor, std::uint64_t first, std::uint64_t offset, std::uint64_t size) override {
    const std::uint64_t lead = (kSharedBlock - offset % kSharedBlock) % kSharedBlock;
    if (!may_share_ || first % kSharedBlock != offset % kSharedBlock || size < lead + kSharedBlock) return {};
    const ByteRange blocks{lead, (size - lead) / kSharedBlock * kSharedBlock};
    file_clone_range range = {descriptor, first + lead, blocks.size, offset + lead};
    if (ioctl(temp_.fd(), FICLONERANGE, &range) == 0) return blocks;
    may_share_ = false;  // another disk, or a file system that cannot
    return {};
  }

  void keep(std::uint64_t mark) override try {
    if (options_.key.empty()) return;
    cut_off_record();
    sync();
    temp_.keep(mark);
  } catch (Error& failure) {
    throw failure.in(path_);
  }

  std::optional<std::uint64_t> kept() const override { return temp_.kept_mark(); }
  bool is_untouched() const override { return temp_.is_untouched(); }
  bool leave_to_next_run() override { return temp_.leave_to_next_run(); }

  void commit() override {
    assert(!is_committed_);
    try {
      finish_content();
      publish();
      is_committed_ = true;
      if (options_.durable) sync_folder();
    } catch (Error& failure) {
      failure.in(path_);
      throw;
    }
  }

  std::string temporary_path() const override {
    return folder_path_ + (folder_path_.ends_with('/') ? "" : "/") + temp_.name();
  }

 private:
  int fd() const noexcept override { return temp_.fd(); }

  AtomicFile(const std::string& path, Destination to, const OutputOptions& options) try
      : WrittenFile(path, options.durable),
        options_(options),
        folder_path_(to.folder),
        folder_(open_folder(to.folder)),
        mode_(examine_destination(folder_.get(), to.name, options.overwrite)),
        temp_(folder_.get(), to.name, first_mode(), options.key, options.whole_of) {
  } catch (Error& failure) {
    failure.in(path);
    throw;
  }

  // The file is private until it has the permissions of the file that it replaces. It is also private if another run
  // may take it over, because a run does not take over a file that others could have written to. Else open() applies
  // the umask to 0666 by itself.
  mode_t first_mode() {
    if (!mode_ && !options_.key.empty()) mode_ = mode_of_a_new_file(folder_.get());
    return mode_ ? 0600 : 0666;
  }

  void cut_off_record() {
    if (!std::exchange(has_record_, false)) return;
    if (retry([&] { return ftruncate(temp_.fd(), static_cast<off_t>(size_)); }) != 0) throw failure_to_write(errno);
  }

  void finish_content() {
    cut_off_record();
    if (mode_ && retry([&] { return fchmod(temp_.fd(), *mode_); }) != 0 && !is_without_permissions(errno))
      throw system_error("cannot be given its permissions", errno);
    if (options_.durable && retry([&] { return fsync(temp_.fd()); }) != 0) throw failure_to_write(errno);
    ask_for_late_failures();
  }

  void publish() {
    if (options_.overwrite) return temp_.publish_over();
    if (!temp_.publish_new()) throw already_exists();
  }

  // EINVAL means that the file system has nothing to sync there.
  void sync_folder() {
    if (retry([&] { return fsync(folder_.get()); }) != 0 && errno != EINVAL)
      throw system_error("was written, but its folder could not be synced", errno);
  }

  OutputOptions options_;
  std::string folder_path_;
  UniqueFd folder_;
  std::optional<mode_t> mode_;  // the mode to give the file in the end
  TempSibling temp_;
  bool has_record_ = false;  // behind the end
  std::atomic<bool> may_share_ = true;
  bool is_committed_ = false;
};

}  // namespace

std::unique_ptr<Sink> create_file(const std::string& path, const OutputOptions& options) {
  return std::make_unique<AtomicFile>(path, options);
}

}  // namespace ballast::io
