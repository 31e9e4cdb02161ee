// Standard output, or a text, buffered. If a verb fails, the buffer is not written, so that an error leaves no half
// document behind. And standard error, which nothing waits for.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ballast::cli {

// Thrown if the reader of our output has gone (`ballast ls X | head`): there is nobody left to tell.
struct ReaderGone {};

// Opens what a caller closed of the standard streams, so that no file of ours gets the number of one of them, and a
// message never ends in a checkpoint. To use such a stream still fails, except that messages vanish.
void open_closed_streams();

// Writes to standard error at once. A message that nobody can read (a full disk, a reader that is gone) is lost, and no
// reason to fail: what the verb did, and its exit code, stay what they are.
void write_to_stderr(std::string_view text) noexcept;

class Output {
 public:
  Output() = default;                                  // standard output
  explicit Output(std::string* text) : text_(text) {}  // the end of `text`

  // From now on, every character that is not ASCII is written as its number, \u4e2d: for a terminal that shows nothing
  // else. JSON stays what it means.
  void use_ascii() noexcept { is_ascii_ = true; }

  void write(std::string_view text) {
    if (is_ascii_) [[unlikely]]
      return write_ascii(text);
    if (text.size() > kBufferBytes - used_) return write_through(text);
    text.copy(buffer_.get() + used_, text.size());
    used_ += text.size();
  }
  void write(char c) { write(std::string_view(&c, 1)); }
  void line(std::string_view text) {
    write(text);
    write('\n');
  }
  void write_bytes(std::span<const std::byte> bytes);

  // Gives a caller room to put a few bytes together itself; use() then says how many bytes the caller used.
  static constexpr std::size_t kMostRoom = 4096;
  char* room(std::size_t size) {
    if (size > kBufferBytes - used_) flush();
    return buffer_.get() + used_;
  }
  void use(std::size_t size) { used_ += size; }

  // Throws Errc::io if the bytes cannot be written, Errc::cancelled after Ctrl-C, and ReaderGone.
  void flush();

 private:
  void write_through(std::string_view text);  // for text that does not fit into the buffer
  void write_ascii(std::string_view text);

  static constexpr std::size_t kBufferBytes = std::size_t{256} << 10;
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  std::size_t used_ = 0;
  std::string* text_ = nullptr;
  bool is_ascii_ = false;
};

}  // namespace ballast::cli
