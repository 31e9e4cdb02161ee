// Numbers and texts as bytes, for messages between processes of one program on machines of one kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/error.hpp>

namespace ballast::mpi {

// A number that differs if the bytes do, for ranks that compare what they have: FNV-1a.
inline std::uint64_t digest_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) digest = (digest ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  return digest;
}

class Packer {
 public:
  void number(std::uint64_t value) { raw(std::as_bytes(std::span(&value, 1))); }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void bytes(std::span<const std::byte> bytes) {
    number(bytes.size());
    raw(bytes);
  }
  void text(std::string_view text) { bytes(std::as_bytes(std::span(text))); }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what a Packer wrote, in the same order. It refuses bytes that end early: another version of this library may
// run on another host.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto from = raw(sizeof value);
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> raw(std::uint64_t size) {
    if (size > rest_.size()) throw Error(Errc::mismatch, "the ranks run different versions of Ballast");
    const auto taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::span<const std::byte> bytes() { return raw(number()); }
  std::string text() {
    const auto from = bytes();
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  bool is_at_end() const noexcept { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace ballast::mpi
