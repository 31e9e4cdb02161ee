// Window: a source read from front to back through a small buffer. The pickle machine gets all of its bytes here:
// nothing behind `last` is ever asked for, whatever a length in the file says.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <ballast/source.hpp>

#include "core/cursor.hpp"

namespace ballast::pickle {

class Window {
 public:
  static constexpr std::size_t kBytes = 65536;  // the most that bytes() can give at once

  // At most `budget` bytes are read, not counting those that are skipped; then Errc::limit.
  Window(const Source& source, std::uint64_t first, std::uint64_t last, std::uint64_t budget)
      : source_(source),
        next_(first),
        last_(last),
        budget_(budget),
        capacity_(static_cast<std::size_t>(std::min<std::uint64_t>(last - first, kBytes))),
        least_(static_cast<std::size_t>(std::clamp<std::uint64_t>(source.bytes_per_round_trip(), kLittle, kBytes))),
        ahead_(least_) {}

  std::uint64_t position() const noexcept { return next_ - (filled_ - at_); }
  std::uint64_t remaining() const noexcept { return last_ - position(); }

  std::uint8_t u8(std::string_view what) {
    if (at_ == filled_) fill(1, what);
    return std::to_integer<std::uint8_t>(buffer_[at_++]);
  }

  // `size` bytes, at most kBytes, valid until the next call.
  std::span<const std::byte> bytes(std::size_t size, std::string_view what) {
    if (filled_ - at_ < size) fill(size, what);
    const std::span all(buffer_.get() + at_, size);
    at_ += size;
    return all;
  }

  // The next `size` bytes, for numbers.
  Cursor numbers(std::size_t size, std::string_view what, std::endian order = std::endian::little) {
    const std::uint64_t from = position();
    return Cursor(bytes(size, what), from, order);
  }

  // The bytes up to a line feed, which is not included; valid until the next call.
  std::string_view line(std::string_view what);

  void skip(std::uint64_t size, std::string_view what);

 private:
  static constexpr std::size_t kLittle = 4096;

  void require(std::uint64_t size, std::string_view what) const;
  void fill(std::size_t size, std::string_view what);

  const Source& source_;
  std::uint64_t next_;  // the byte of the source that would come into the buffer next
  std::uint64_t last_;
  std::uint64_t budget_;
  std::size_t capacity_;  // of the buffer; no more than there is to read
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  const std::size_t least_;  // the least to read at once
  std::size_t ahead_;        // how much to read at once: little at first, as most pickles are short
  std::string long_line_;
};

}  // namespace ballast::pickle
