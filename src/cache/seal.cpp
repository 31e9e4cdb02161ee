#include "cache/seal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <ballast/error.hpp>
#include <ballast/limits.hpp>

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/cursor.hpp"
#include "io/posix.hpp"
#include "kernels/digest.hpp"

namespace ballast {
namespace {

constexpr std::size_t kTimeDigits = 16, kMacDigits = 64, kSealDigits = kTimeDigits + kMacDigits;
constexpr std::size_t kLengthBytes = 8;  // of the length that stands before a safetensors header

// Sealing writes a few bytes and sets a time. A network file system may be slow at both.
constexpr std::int64_t kMostSecondsToSeal = 60;

[[noreturn]] void refuse_seal(const char* why) { throw Error(Errc::mismatch, why); }

std::vector<std::byte> read_exactly(int fd, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::size_t done = 0;
  if (const int error = io::read_all_at(fd, offset, bytes, done); error != 0)
    throw io::system_error("cannot be read", error);
  if (done != bytes.size()) refuse_seal("the cache is not complete");
  return bytes;
}

// The first bytes of a cache, up to the end of its header, and where the seal lies in them.
struct SealedHeader {
  std::vector<std::byte> bytes;
  std::size_t seal = 0;

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
  std::string_view time() const { return text().substr(seal, kTimeDigits); }
  std::string_view mac() const { return text().substr(seal + kTimeDigits, kMacDigits); }
};

SealedHeader read_header(int fd) {
  const auto front = read_exactly(fd, 0, kLengthBytes);
  const std::uint64_t length = Cursor(front).u64("header length");
  if (length > Limits{}.max_header_bytes) refuse_seal("is not a conversion cache");
  SealedHeader header{read_exactly(fd, 0, kLengthBytes + length)};
  const std::string key = '"' + std::string(kSealKey) + "\":\"";
  const auto found = header.text().find(key);
  if (found == std::string_view::npos || header.text().size() - found < key.size() + kSealDigits)
    refuse_seal("is not a conversion cache with a seal");
  header.seal = found + key.size();
  return header;
}

void put(SealedHeader& header, std::size_t offset, std::string_view digits) {
  const auto bytes = std::as_bytes(std::span(digits));
  std::ranges::copy(bytes, header.bytes.begin() + static_cast<std::ptrdiff_t>(header.seal + offset));
}

std::string mac_of(SealedHeader header, const UserSecret& secret) {
  put(header, kTimeDigits, std::string(kMacDigits, '0'));
  return kernels::to_hex(kernels::hmac_sha256(secret, header.bytes));
}

std::int64_t seconds_of_change(int fd) {
  struct stat found = {};
  if (fstat(fd, &found) != 0) throw io::system_error("cannot be examined", errno);
  return found.st_ctim.tv_sec;
}

}  // namespace

std::string blank_seal() { return std::string(kSealDigits, '0'); }

void seal_cache(const std::string& path, const UserSecret& secret, std::int64_t seconds) try {
  const io::UniqueFd fd(io::retry([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW); }));
  if (!fd) throw io::system_error("cannot be opened", errno);
  SealedHeader header = read_header(fd.get());
  put(header, 0, kernels::to_hex(static_cast<std::uint64_t>(seconds_of_change(fd.get()) + seconds)));
  put(header, kTimeDigits, mac_of(header, secret));
  const auto seal = std::span(header.bytes).subspan(header.seal, kSealDigits);
  if (const int error = io::write_all_at(fd.get(), header.seal, seal); error != 0)
    throw io::system_error("cannot be written", error);
} catch (Error& error) {
  throw error.in(path);
}

void check_seal(const std::string& path, const UserSecret& secret) {
  const io::UniqueFd fd(
      io::retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }));
  if (!fd) throw io::system_error("cannot be opened", errno).in(path);
  const SealedHeader header = read_header(fd.get());
  if (!kernels::is_equal_in_constant_time(header.mac(), mac_of(header, secret)))
    refuse_seal("was not made by this user, or was changed after it was made");
  std::uint64_t sealed = 0;
  std::from_chars(header.time().data(), header.time().data() + kTimeDigits, sealed, 16);
  const std::int64_t passed = seconds_of_change(fd.get()) - static_cast<std::int64_t>(sealed);
  if (passed < 0 || passed > kMostSecondsToSeal) refuse_seal("was changed, copied or restored after it was made");
}

}  // namespace ballast
