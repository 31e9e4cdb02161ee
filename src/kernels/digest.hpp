// Digests of bytes: SHA-256 if the digest is compared with other programs' digests, XXH3 if not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ballast::kernels {

std::string to_hex(std::span<const std::byte> bytes);  // lower case

// One digest in progress. One thread at a time may use it. If an update is abandoned half-way (a signal jumped out of
// it), reset() makes the object usable again.
class Sha256 {
 public:
  using Digest = std::array<std::byte, 32>;

  Sha256();

  void update(std::span<const std::byte> bytes);
  Digest finish();  // also resets the object
  std::string hex() { return to_hex(finish()); }
  void reset();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;
};

// The same with SHA-1, which is no protection against forgers: for the names that Git gives to files, and nothing else.
class Sha1 {
 public:
  Sha1();

  void update(std::span<const std::byte> bytes);
  std::string hex();  // once

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;
};

// Only a program that has the key can compute this digest.
Sha256::Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes);

// Whether two texts are equal. The time that the comparison takes does not tell where they differ.
bool is_equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

// The digest of the xxHash library, version 0.8 and later, without a seed.
std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept;

// The usual spelling: the most significant digit first.
std::string to_hex(std::uint64_t digest);

// One digest of bytes that several threads hash: XXH3 of leaves of 64 KiB and, if there is more than one leaf, XXH3 of
// the leaves' digests (8 bytes each, least significant first).
inline constexpr std::size_t kLeafBytes = std::size_t{64} << 10;
constexpr std::uint64_t leaf_count(std::uint64_t bytes) noexcept {
  return bytes / kLeafBytes + (bytes % kLeafBytes != 0 || bytes == 0);
}
void hash_leaves(std::span<const std::byte> bytes, std::span<std::uint64_t> leaves) noexcept;  // leaf_count() items
std::uint64_t join_leaves(std::span<const std::uint64_t> leaves) noexcept;

// xxh3_64 of bytes that come in parts. May be abandoned half-way like Sha256.
class Xxh3 {
 public:
  Xxh3();

  void update(std::span<const std::byte> bytes) noexcept;
  std::uint64_t digest_64() const noexcept;  // of all bytes so far
  void reset() noexcept;

 private:
  struct Free {
    void operator()(void* state) const noexcept;
  };
  std::unique_ptr<void, Free> state_;
};

}  // namespace ballast::kernels
