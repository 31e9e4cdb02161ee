// HeaderWindow: a few of a source's bytes in memory. Headers are small and often lie close together, so that one read
// can serve many of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/checked.hpp"
#include "io/byte_source.hpp"

namespace ballast::archive {

class HeaderWindow {
 public:
  explicit HeaderWindow(const io::ByteSource& source) : source_(source) {}

  bool holds(std::uint64_t offset, std::uint64_t size) const noexcept {
    return offset >= begin_ && is_inside(offset - begin_, size, bytes_.size());
  }

  // The bytes at `offset`, until the next call. Where they must be read, `ahead` bytes are read at once if there are so
  // many: the caller knows how many are worth it. A range outside of the source is Errc::malformed.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t size, std::uint64_t ahead = 0) {
    if (!holds(offset, size)) load(offset, size, ahead);
    return std::span(bytes_).subspan(static_cast<std::size_t>(offset - begin_), static_cast<std::size_t>(size));
  }

 private:
  void load(std::uint64_t offset, std::uint64_t size, std::uint64_t ahead);

  const io::ByteSource& source_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace ballast::archive
