#include "cache/identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <type_traits>

#include "checkpoint/recognize/detect.hpp"
#include "checkpoint/recognize/folder.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "formats/safetensors/format.hpp"
#include "io/posix.hpp"
#include "io/section.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

// The number after the slash is the version of the cache: raise it with every change to what a cache holds, or to what
// a reader makes of a file.
constexpr std::string_view kKeyVersion = BALLAST_VERSION "/4";

constexpr std::uint64_t kEndBytes = 64 << 10;

bool is_folder(const std::string& target) {
  std::error_code ignored;
  return fs::is_directory(target, ignored);
}

void add_range(kernels::Xxh3& digest, int fd, std::uint64_t offset, std::uint64_t size) {
  std::array<std::byte, kEndBytes> buffer;
  while (size > 0) {
    const ssize_t n =
        io::retry([&] { return pread(fd, buffer.data(), static_cast<std::size_t>(size), static_cast<off_t>(offset)); });
    if (n < 0) throw io::system_error("cannot be read", errno);
    if (n == 0) return;  // the file shrank: its size and times show that already
    digest.update(std::span(buffer).first(static_cast<std::size_t>(n)));
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
}

SourceIdentity identify(const std::string& name, const std::string& path) try {
  const io::UniqueFd fd(io::retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  struct stat found = {};
  if (!fd || fstat(fd.get(), &found) != 0) throw io::system_error("cannot be opened", errno);
  if (!S_ISREG(found.st_mode)) throw Error(Errc::unsupported, "is no file");

  SourceIdentity source{name, io::identify(found), 0};
  source.file.device = 0;
  const std::uint64_t bytes = source.file.size_bytes, last = bytes - std::min(kEndBytes, bytes);
  kernels::Xxh3 digest;
  add_range(digest, fd.get(), 0, std::min(kEndBytes, bytes));
  add_range(digest, fd.get(), last, bytes - last);
  source.ends_digest = digest.digest_64();
  return source;
} catch (Error& error) {
  throw error.in(path);
}

// The options are named one by one, so that whoever adds one has to decide here whether it changes what is read.
std::uint64_t digest_of(const OpenOptions& options) {
  const auto& [limits, safety, root, variant, single, little_endian_blocks, lenient, dequantize, threads, cache,
               compress, progress, files, remote, checks_end] = options;
  const std::array<std::uint8_t, 4> choices = {static_cast<std::uint8_t>(safety), single, little_endian_blocks,
                                               lenient};
  static_assert(std::has_unique_object_representations_v<Limits>);
  kernels::Xxh3 digest;
  digest.update(std::as_bytes(std::span(&limits, 1)));
  digest.update(std::as_bytes(std::span(choices)));
  digest.update(std::as_bytes(std::span(variant)));
  return digest.digest_64();
}

std::vector<std::string> files_of_index(const std::string& index, const Limits& limits) {
  std::vector<std::string> files;
  const ShardIndex shards = parse_shard_index(io::read_text_file(index, limits), limits);
  for (const std::string& shard : shards.files) files.push_back((fs::path(index).parent_path() / shard).string());
  files.push_back(index);
  return files;
}

std::vector<std::string> files_of_file(const std::string& path, const OpenOptions& options) {
  const Recognized recognized = recognize(file_source(path), options.limits);
  if (recognized.is_json()) return files_of_index(path, options.limits);
  if (recognized.format == &safetensors::kFormat)
    throw Error(Errc::unsupported, "a safetensors file needs no cache").in(path);
  const bool is_set = recognized.format->set_of != nullptr && !options.single;
  return is_set ? recognized.format->set_of(path, options.limits) : std::vector{path};
}

fs::path folder_of_target(const std::string& target) {
  return is_folder(target) ? fs::path(target) : fs::path(target).parent_path();
}

std::string name_of_source(const std::string& target, const std::string& path) {
  if (path == target) return "";
  const fs::path name = fs::path(path).filename();
  if (fs::path(path).lexically_normal() != (folder_of_target(target) / name).lexically_normal())
    throw Error(Errc::unsupported, "lies elsewhere than the checkpoint").in(path);
  return name.string();
}

[[noreturn]] void refuse(const std::string& why) { throw Error(Errc::mismatch, why); }

}  // namespace

std::string path_of_source(const std::string& target, const std::string& name) {
  return name.empty() ? target : (folder_of_target(target) / name).string();
}

std::vector<std::string> files_of_target(const std::string& target, const OpenOptions& options) {
  auto names = local_files()->list(target);
  if (!names) return files_of_file(target, options);
  const FolderContents contents = look_into(target, *std::move(names), *local_files(), options.variant);
  if (!contents.index.empty()) return files_of_index(contents.index, options.limits);
  return contents.files.size() == 1 ? files_of_file(contents.files.front(), options) : contents.files;
}

CacheKey key_of(const std::string& target, const OpenOptions& options) {
  CacheKey key;
  key.version = kKeyVersion;
  key.options_digest = digest_of(options);
  for (const std::string& file : files_of_target(target, options))
    key.sources.push_back(identify(name_of_source(target, file), file));
  return key;
}

void check_key(const CacheKey& key, const std::string& target, const OpenOptions& options) {
  if (key.version != kKeyVersion) refuse("was made by another version of Ballast");
  if (key.options_digest != digest_of(options)) refuse("was made by an open with other options");
  std::error_code ignored;
  if (!fs::exists(target, ignored)) refuse("the source is gone");
  const CacheKey now = key_of(target, options);
  if (!std::ranges::equal(now.sources, key.sources, {}, &SourceIdentity::name, &SourceIdentity::name))
    refuse("the checkpoint consists of other files now");
  if (now != key) refuse("the source has changed");
}

}  // namespace ballast
