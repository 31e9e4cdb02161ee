#include "formats/gguf/header_text.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/huge_pages.hpp"
#include "core/remedy.hpp"

namespace ballast::gguf {
namespace {

constexpr std::uint64_t kFirstRead = 64 << 10;  // all of a header without a vocabulary

}  // namespace

HeaderText::HeaderText(const Source& source, std::uint64_t max_bytes)
    : source_(source), size_(source.size_bytes()), max_bytes_(std::min(max_bytes, size_)) {}

void HeaderText::require_room_for(std::uint64_t count, std::uint64_t min_bytes_each, std::string_view what) const {
  if (count <= remaining() / min_bytes_each) return;
  throw Error(Errc::malformed, fmt::format("the {} is {}, but only {} bytes follow", what, count, remaining()))
      .at_byte(position())
      .hint("the file was damaged, or cut short: an interrupted download or copy?");
}

// Makes the text longer by half each time, so that at most one and a half times the length of the header is read. If
// the source is far away, it makes the text twice as long each time, and reads no less than what comes with one
// request.
void HeaderText::load(std::uint64_t size, std::string_view what) {
  if (size > remaining()) {
    throw Error(Errc::malformed, fmt::format("the file ends inside the {}", what))
        .at_byte(at_)
        .hint("the file was cut short: an interrupted download or copy?");
  }
  if (size > max_bytes_ - at_) {
    throw Error(Errc::limit, fmt::format("the header has more than the {} bytes that are allowed", max_bytes_))
        .at_byte(at_)
        .hint(raise_limit("max_header_bytes"));
  }
  const std::uint64_t far = source_.bytes_per_round_trip();
  const std::uint64_t more = far == 0 ? loaded_ / 2 : std::max(loaded_, far);
  const std::uint64_t wanted = std::max({at_ + size, loaded_ + more, kFirstRead});
  const std::uint64_t end = std::min(wanted, max_bytes_);
  resize(end);
  const auto fresh = std::span(text_.get() + loaded_, static_cast<std::size_t>(end - loaded_));
  prefer_huge_pages(fresh.data(), fresh.size());
  source_.read(loaded_, std::as_writable_bytes(fresh));
  loaded_ = end;
}

// realloc moves large blocks by their pages, without a copy.
void HeaderText::resize(std::uint64_t size) {
  void* moved = std::realloc(text_.get(), static_cast<std::size_t>(std::max<std::uint64_t>(size, 1)));
  if (moved == nullptr) throw std::bad_alloc();
  static_cast<void>(text_.release());
  text_.reset(static_cast<char*>(moved));
}

std::shared_ptr<const char> HeaderText::share() && {
  resize(at_);
  return std::shared_ptr<char>(std::move(text_));
}

}  // namespace ballast::gguf
