#include "formats/pickle/window.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/remedy.hpp"

namespace ballast::pickle {
namespace {

// A line must be held whole to be understood. No honest line comes near this length: data so large are binary.
constexpr std::size_t kLongestLine = 256 << 20;

}  // namespace

void Window::require(std::uint64_t size, std::string_view what) const {
  if (size <= remaining()) return;
  throw Error(Errc::malformed,
              fmt::format("the pickle ends inside {}: {} more bytes are needed, {} follow", what, size, remaining()))
      .at_byte(position());
}

// Puts at least `size` contiguous bytes into the buffer, from at_ on.
void Window::fill(std::size_t size, std::string_view what) {
  require(size, what);
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  const std::size_t kept = filled_ - at_;
  if (at_ != 0 && kept != 0) std::memmove(buffer_.get(), buffer_.get() + at_, kept);
  at_ = 0;
  filled_ = kept;

  const auto wanted = std::max(size - kept, std::min(ahead_, capacity_ - kept));
  const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, last_ - next_));
  if (size - kept > budget_) {
    throw Error(Errc::limit, "the pickle is longer than max_pickle_bytes, large strings not counted")
        .at_byte(position())
        .hint(raise_limit("max_pickle_bytes"));
  }
  source_.read(next_, {buffer_.get() + kept, more});
  next_ += more;
  filled_ += more;
  budget_ -= std::min<std::uint64_t>(budget_, more);
  ahead_ = std::min(4 * ahead_, kBytes);
}

std::string_view Window::line(std::string_view what) {
  long_line_.clear();
  while (true) {
    if (at_ == filled_) fill(1, what);
    const char* from = reinterpret_cast<const char*>(buffer_.get() + at_);
    const std::size_t there = filled_ - at_;
    const void* end = std::memchr(from, '\n', there);
    if (end != nullptr) {
      const auto size = static_cast<std::size_t>(static_cast<const char*>(end) - from);
      at_ += size + 1;
      if (long_line_.empty()) return {from, size};
      return long_line_.append(from, size);
    }
    // Nearly every line lies in the buffer as it is; other lines are put together.
    if (there > kLongestLine - long_line_.size()) {
      throw Error(Errc::limit, fmt::format("a line of more than {} bytes in {}", kLongestLine, what))
          .at_byte(position());
    }
    long_line_.append(from, there);
    at_ = filled_;
  }
}

void Window::skip(std::uint64_t size, std::string_view what) {
  require(size, what);
  const std::uint64_t there = filled_ - at_;
  if (size <= there) {
    at_ += static_cast<std::size_t>(size);
    return;
  }
  // Bytes that had been read ahead are not needed. They do not count, and less is read ahead next time, since there may
  // be many large strings.
  budget_ += there;
  ahead_ = least_;
  next_ += size - there;
  at_ = filled_ = 0;
}

}  // namespace ballast::pickle
