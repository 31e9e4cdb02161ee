// Documents of texts that are in memory already, and values in the middle of a text.
#pragma once

#include <cstddef>
#include <string_view>

#include <ballast/json.hpp>

#include "core/json_text.hpp"

namespace ballast {

inline constexpr std::size_t kMaxJsonDepth = 64;

// Some editors begin a UTF-8 text with these three bytes.
inline std::string_view without_byte_order_mark(std::string_view text) noexcept {
  return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
}

// As Json::parse, without a copy of the text.
Json parse_json(const PaddedText& text, JsonText::Numbers numbers);

// Takes the value that comes next in the text, whatever follows it. The text is UTF-8 (JsonText::check_utf8).
Json next_value(JsonText& text);

}  // namespace ballast
