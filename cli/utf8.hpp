// One character of UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace ballast::cli {

struct DecodedCharacter {
  char32_t code;
  std::size_t size;  // bytes; 0 if the text does not begin with UTF-8
};

// By RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. The text is not empty.
inline DecodedCharacter decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || size > text.size()) return {0, 0};

  char32_t code = lead & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kSmallest[size] || surrogate || code > 0x10FFFF) return {0, 0};
  return {code, size};
}

}  // namespace ballast::cli
