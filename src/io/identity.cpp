#include "io/identity.hpp"

namespace ballast::io {
namespace {

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

}  // namespace

std::optional<FileIdentity> identify(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return identify(found);
}

FileIdentity identify(const struct stat& found) {
  return {found.st_dev, found.st_ino, static_cast<std::uint64_t>(found.st_size), nanoseconds(found.st_mtim),
          nanoseconds(found.st_ctim)};
}

}  // namespace ballast::io
