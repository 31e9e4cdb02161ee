// HeaderText: the beginning of a file, read as far as a parser asks for it, because a GGUF header does not say how long
// it is. All integers of the header are read through it: it takes nothing past the file's end, whatever is asked for.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include <ballast/source.hpp>

namespace ballast::gguf {

// A range of the text. A view would not stay valid, because the text moves as it grows.
struct TextRange {
  std::uint64_t begin = 0, size = 0;
};

class HeaderText {
 public:
  // `max_bytes` is the cap on what is read of the source (Errc::limit).
  HeaderText(const Source& source, std::uint64_t max_bytes);

  void set_order(std::endian order) noexcept { order_ = order; }
  std::uint64_t position() const noexcept { return at_; }
  std::uint64_t remaining() const noexcept { return size_ - at_; }  // in the file

  std::uint32_t u32(std::string_view what) { return number<std::uint32_t>(what); }
  std::uint64_t u64(std::string_view what) { return number<std::uint64_t>(what); }

  // Passes over the next bytes, and returns their range.
  TextRange bytes(std::uint64_t size, std::string_view what) {
    need(size, what);
    const TextRange range{at_, size};
    at_ += size;
    return range;
  }

  // A count is a promise about bytes that must follow: call this before anything is done with the count.
  void require_room_for(std::uint64_t count, std::uint64_t min_bytes_each, std::string_view what) const;

  // Bytes that have been passed. The view is valid until more is read.
  std::string_view view(TextRange range) const noexcept { return {text_.get() + range.begin, range.size}; }

  // All bytes that have been passed, in memory of exactly their size.
  std::shared_ptr<const char> share() &&;

 private:
  struct Free {
    void operator()(char* text) const noexcept { std::free(text); }
  };

  void need(std::uint64_t size, std::string_view what) {
    if (size > loaded_ - at_) [[unlikely]]
      load(size, what);
  }
  void load(std::uint64_t size, std::string_view what);
  void resize(std::uint64_t size);

  template <std::unsigned_integral T>
  T number(std::string_view what) {
    need(sizeof(T), what);
    T value;
    std::memcpy(&value, text_.get() + at_, sizeof value);
    at_ += sizeof value;
    return order_ == std::endian::native ? value : swapped(value);
  }
  static std::uint32_t swapped(std::uint32_t value) noexcept { return __builtin_bswap32(value); }
  static std::uint64_t swapped(std::uint64_t value) noexcept { return __builtin_bswap64(value); }

  const Source& source_;
  std::uint64_t size_, max_bytes_;
  std::unique_ptr<char, Free> text_;
  std::uint64_t at_ = 0, loaded_ = 0;
  std::endian order_ = std::endian::little;
};

}  // namespace ballast::gguf
