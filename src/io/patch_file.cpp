#include "io/patch_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/posix.hpp"

namespace ballast::io {

bool has_one_name(const std::string& path) {
  struct stat file = {};
  return lstat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1;
}

void patch_file(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes, bool durable) try {
  const UniqueFd fd(retry([&] { return open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
  if (!fd) throw system_error("cannot be opened for writing", errno);
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n <= 0) throw system_error("cannot be written", n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  if (durable && retry([&] { return fsync(fd.get()); }) != 0) throw system_error("cannot be synced", errno);
} catch (Error& error) {
  throw error.in(path);
}

}  // namespace ballast::io
