#include "raw_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <ballast/error.hpp>

namespace ballast::cli {
namespace {

Error already_there(const std::string& path) {
  return Error(Errc::invalid_argument, "already exists").in(path).hint("overwrite it with --force");
}

}  // namespace

RawFile::RawFile(std::string path, RawFileOptions options)
    : path_(std::move(path)), temporary_(fmt::format("{}.tmp.{}", path_, getpid())), options_(options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // A link is followed only to refuse what must not be replaced: /dev/stdout is one.
  const fs::file_status target = fs::status(path_, ignored);
  if (fs::exists(target) && !fs::is_regular_file(target))
    throw Error(Errc::invalid_argument,
                fs::is_directory(target) ? "is a directory" : "is a device or a pipe, not a file")
        .in(path_)
        .hint("-o FILE makes a file; -o - writes to standard output");
  if (!options_.overwrite && fs::exists(fs::symlink_status(path_, ignored))) throw already_there(path_);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot create");
}

RawFile::~RawFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void RawFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void RawFile::publish() {
  if (options_.sync && ::fsync(descriptor_) != 0) fail("cannot write");
  if (!options_.overwrite) {
    // A link, unlike a rename, refuses a file that has come up meanwhile.
    if (::link(temporary_.c_str(), path_.c_str()) != 0) {
      if (errno == EEXIST) throw already_there(path_);
      fail("cannot create");
    }
    ::unlink(temporary_.c_str());
  } else if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("cannot create");
  }
  const int finished = std::exchange(descriptor_, -1);
  if (::close(finished) != 0) fail("cannot write");
}

void RawFile::fail(const char* what) const {
  throw Error(Errc::io, fmt::format("{}: {}", what, std::strerror(errno))).in(path_);
}

}  // namespace ballast::cli
