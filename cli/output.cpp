#include "output.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <ballast/error.hpp>

#include "interrupt.hpp"
#include "terminal.hpp"

namespace ballast::cli {

void open_closed_streams() {
  struct Stream {
    int descriptor, mode;
  };
  // The modes that make every use of standard input and output fail, as if they were still closed.
  for (const auto& [descriptor, mode] :
       {Stream{STDIN_FILENO, O_WRONLY}, Stream{STDOUT_FILENO, O_RDONLY}, Stream{STDERR_FILENO, O_WRONLY}}) {
    // The system gives the lowest number that is free, and those below are open by now.
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) static_cast<void>(::open("/dev/null", mode));
  }
}

void write_to_stderr(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) return;
  }
}

void Output::write_bytes(std::span<const std::byte> bytes) {
  write_through({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void Output::write_through(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kBufferBytes - used_);
    part.copy(buffer_.get() + used_, part.size());
    used_ += part.size();
    text.remove_prefix(part.size());
    if (used_ == kBufferBytes) flush();
  }
}

void Output::flush() {
  std::string_view rest(buffer_.get(), used_);
  if (text_ != nullptr) {
    text_->append(rest);
    used_ = 0;
    return;
  }
  while (!rest.empty()) {
    throw_if_interrupted();
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) throw ReaderGone();
    throw Error(Errc::io, fmt::format("cannot write: {}", std::strerror(errno))).in("standard output");
  }
  used_ = 0;
}

void Output::write_ascii(std::string_view text) { write_through(in_ascii(text)); }

}  // namespace ballast::cli
