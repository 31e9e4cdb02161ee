// HeaderWindow: a few of a source's bytes in memory. Headers are small and often lie close together, so that one read
// can serve many of them. Headers that lie far apart can be asked for in one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ballast/source.hpp>

namespace ballast::archive {

class HeaderWindow {
 public:
  explicit HeaderWindow(const Source& source) : source_(source) {}

  // The bytes at `offset`, valid until the next call. If they must be read, up to `ahead` bytes are read at once: the
  // caller knows how many are worth it. A range outside of the source is Errc::malformed.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t size, std::uint64_t ahead = 0);

  // Reads ranges of the source, ascending and apart from each other, in one call. Their bytes are held until the next
  // such call, whatever else is read.
  void load(std::span<const ByteRange> ranges);

 private:
  struct Piece {
    std::uint64_t offset = 0;  // in the source
    std::span<const std::byte> bytes;

    bool holds(std::uint64_t first, std::uint64_t size) const noexcept;
    std::span<const std::byte> at(std::uint64_t first, std::uint64_t size) const noexcept;
  };

  const Piece* find_loaded(std::uint64_t offset, std::uint64_t size) const noexcept;

  const Source& source_;
  std::vector<std::byte> bytes_, loaded_bytes_;
  Piece piece_;                // the bytes that were read last
  std::vector<Piece> loaded_;  // ascending
};

}  // namespace ballast::archive
