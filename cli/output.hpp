// Standard output, buffered. What is in the buffer when a verb fails is never written, so that an error leaves no half
// document behind.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ballast::cli {

// Thrown when whoever read our output has gone (`ballast ls X | head`): there is nobody left to tell.
struct ReaderGone {};

class Output {
 public:
  void write(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kFlushAt) flush();
  }
  void write(char c) { buffer_ += c; }
  void line(std::string_view text) {
    write(text);
    write('\n');
  }
  void write_bytes(std::span<const std::byte> bytes);

  // Throws Errc::io where the bytes cannot be written, Errc::cancelled after Ctrl-C, and ReaderGone.
  void flush();

 private:
  static constexpr std::size_t kFlushAt = std::size_t{256} << 10;
  std::string buffer_;
};

}  // namespace ballast::cli
