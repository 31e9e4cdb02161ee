#include "core/padded_text.hpp"

#include <cstring>

#include "core/huge_pages.hpp"

namespace ballast {

PaddedText::PaddedText(std::size_t size) : text_(new char[size + kPadding]), size_(size) {
  prefer_huge_pages(text_.get(), size);
  std::memset(text_.get() + size, 0, kPadding);
}

PaddedText::PaddedText(std::string_view text) : PaddedText(text.size()) {
  if (!text.empty()) std::memcpy(text_.get(), text.data(), text.size());
}

}  // namespace ballast
