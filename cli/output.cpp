#include "output.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>
#include <ballast/error.hpp>

#include "interrupt.hpp"
#include "terminal.hpp"

namespace ballast::cli {

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
