// Cursor: the one door through which integers leave untrusted bytes.
//
// A cursor walks a span that it does not own, in either byte order. Every read names what it reads, so that the message
// for a file that stops too early says "ends inside the tensor count" and names the byte. No read goes past the end of
// the span, whatever size is asked for.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <ballast/error.hpp>

namespace ballast {

class Cursor {
 public:
  // `base` is the offset of the first byte in the file, for messages.
  explicit Cursor(std::span<const std::byte> bytes, std::uint64_t base = 0, std::endian order = std::endian::little)
      : bytes_(bytes), base_(base), order_(order) {}

  std::uint64_t position() const noexcept { return base_ + done_; }  // in the file
  std::uint64_t remaining() const noexcept { return bytes_.size() - done_; }
  bool at_end() const noexcept { return remaining() == 0; }

  std::uint8_t u8(std::string_view what) { return number<std::uint8_t>(what); }
  std::uint16_t u16(std::string_view what) { return number<std::uint16_t>(what); }
  std::uint32_t u32(std::string_view what) { return number<std::uint32_t>(what); }
  std::uint64_t u64(std::string_view what) { return number<std::uint64_t>(what); }
  std::int8_t i8(std::string_view what) { return std::bit_cast<std::int8_t>(u8(what)); }
  std::int16_t i16(std::string_view what) { return std::bit_cast<std::int16_t>(u16(what)); }
  std::int32_t i32(std::string_view what) { return std::bit_cast<std::int32_t>(u32(what)); }
  std::int64_t i64(std::string_view what) { return std::bit_cast<std::int64_t>(u64(what)); }
  float f32(std::string_view what) { return std::bit_cast<float>(u32(what)); }
  double f64(std::string_view what) { return std::bit_cast<double>(u64(what)); }

  // Views of the next bytes. A view is valid as long as the span that the cursor was given.
  std::span<const std::byte> bytes(std::uint64_t size, std::string_view what) {
    if (size > remaining()) throw Error(Errc::malformed, "ends inside the " + std::string(what)).at_byte(position());
    const auto next = bytes_.subspan(done_, static_cast<std::size_t>(size));
    done_ += next.size();
    return next;
  }

  std::string_view string(std::uint64_t size, std::string_view what) {
    const auto next = bytes(size, what);
    return {reinterpret_cast<const char*>(next.data()), next.size()};
  }

  void skip(std::uint64_t size, std::string_view what) { bytes(size, what); }

  // A count is a promise about bytes that must follow. Call this before you reserve anything for the count.
  void require_room_for(std::uint64_t count, std::uint64_t min_bytes_each, std::string_view what) const {
    if (min_bytes_each == 0 || count <= remaining() / min_bytes_each) return;
    throw Error(Errc::malformed, "the " + std::string(what) + " is " + std::to_string(count) + ", but only " +
                                     std::to_string(remaining()) + " bytes follow")
        .at_byte(position());
  }

 private:
  // Reads byte by byte; compilers turn this into one load (and a swap), whatever the byte order of the machine.
  template <std::unsigned_integral T>
  T number(std::string_view what) {
    const auto from = bytes(sizeof(T), what);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const std::size_t significance = order_ == std::endian::little ? i : sizeof(T) - 1 - i;
      value |= std::to_integer<std::uint64_t>(from[i]) << (8 * significance);
    }
    return static_cast<T>(value);
  }

  std::span<const std::byte> bytes_;
  std::uint64_t base_;
  std::endian order_;
  std::size_t done_ = 0;
};

}  // namespace ballast
