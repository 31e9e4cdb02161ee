#include "io/written_file.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "core/text.hpp"
#include "io/posix.hpp"

namespace ballast::io {

void WrittenFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (const int error = write_all_at(fd(), offset, bytes)) throw failure_to_write(error);
}

void WrittenFile::read_back(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  if (const int error = read_all_at(fd(), offset, out, done))
    throw system_error("cannot be read back", error).in(path_);
  if (done < out.size()) throw Error(Errc::io, "ends before what was written to it").in(path_);
}

void WrittenFile::sync() {
  if (durable_ && retry([&] { return fdatasync(fd()); }) != 0) throw failure_to_write(errno);
}

// Once the pages are on the disk, the page cache can give them up, so that the next read reads the disk.
void WrittenFile::settle() {
  if (!durable_) return;
  sync();
  posix_fadvise(fd(), 0, 0, POSIX_FADV_DONTNEED);
}

std::uint64_t WrittenFile::free_bytes() const {
  struct statvfs disk = {};
  return fstatvfs(fd(), &disk) == 0 ? disk.f_bavail * disk.f_frsize : UINT64_MAX;
}

// Closing a duplicate asks for them, and keeps the lock.
void WrittenFile::ask_for_late_failures() const {
  const int duplicate = fcntl(fd(), F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0 || (close(duplicate) != 0 && errno != EINTR)) throw failure_to_write(errno);
}

Error WrittenFile::failure_to_write(int error) const {
  if (error == EFAULT)  // the only memory that can vanish is a map
    return Error(Errc::changed, "cannot be written, because a file that it is made from shrank").in(path_);
  if (error != ENOSPC && error != EDQUOT) return system_error("cannot be written", error).in(path_);

  struct statvfs disk = {};
  fstatvfs(fd(), &disk);
  const char* reason = error == ENOSPC ? "the disk is full" : "the disk quota is used up";
  return Error(Errc::io, fmt::format("{}: {} bytes ({}) are needed, {} are free", reason, size_, format_bytes(size_),
                                     format_bytes(disk.f_bavail * disk.f_frsize)))
      .in(path_)
      .hint("free some space, or write to another disk");
}

}  // namespace ballast::io
