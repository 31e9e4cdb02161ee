// PaddedText: a text in memory with zeros behind it, for parsers that look ahead without asking where the end is.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace ballast {

class PaddedText {
 public:
  static constexpr std::size_t kPadding = 32;

  explicit PaddedText(std::size_t size);  // only the padding is filled
  explicit PaddedText(std::string_view text);

  std::span<std::byte> bytes() noexcept { return std::as_writable_bytes(std::span(text_.get(), size_)); }
  std::string_view view() const noexcept { return {text_.get(), size_}; }

 private:
  std::unique_ptr<char[]> text_;
  std::size_t size_;
};

}  // namespace ballast
