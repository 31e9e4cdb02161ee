#include "io/posix.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <system_error>
#include <utility>

namespace ballast::io {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

int UniqueFd::release() noexcept { return std::exchange(fd_, -1); }

namespace {

struct Hint {
  int error;
  std::string_view text;
};

constexpr Hint kHints[] = {
    {EMFILE, "this process may not have more files open at once; raise the number with ulimit -n"},
    {EACCES, "check the permissions of the file and of the folders that lead to it"},
    {EROFS, "write to another place"},
};

std::string lower_case_reason(int error) {
  std::string reason = std::generic_category().message(error);
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return reason;
}

}  // namespace

Error system_error(std::string_view what, int error) {
  const bool is_missing = error == ENOENT || error == ENOTDIR;
  Error failure(is_missing ? Errc::not_found : Errc::io, std::string(what) + ": " + lower_case_reason(error));
  failure.of_system(error);
  for (const auto& hint : kHints)
    if (hint.error == error) failure.hint(hint.text);
  return failure;
}

int write_all_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n < 0) return errno;
    if (n == 0) return EIO;  // never happens for a regular file; if it does, an error is better than an endless loop
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int read_all_at(int fd, std::uint64_t offset, std::span<std::byte> out, std::size_t& done) {
  for (done = 0; done < out.size();) {
    const auto rest = out.subspan(done);
    const ssize_t n = retry([&] { return pread(fd, rest.data(), rest.size(), static_cast<off_t>(offset + done)); });
    if (n < 0) return errno;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

std::string run_of_the_system() {
  std::array<char, 64> id{};
  const UniqueFd file(retry([&] { return open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); }));
  if (!file) return {};
  const auto size = retry([&] { return ::read(file.get(), id.data(), id.size()); });
  const std::string_view text(id.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(text.substr(0, text.find('\n')));
}

bool is_name_taken(const std::string& path) {
  struct stat found = {};
  return lstat(path.c_str(), &found) == 0;
}

std::string_view kind_of_file(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return "a file";
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a named pipe";
    case S_IFSOCK: return "a socket";
    case S_IFCHR: return "a character device";
    case S_IFBLK: return "a block device";
    case S_IFLNK: return "a symbolic link";
    default: return "of an unknown kind";
  }
}

}  // namespace ballast::io
