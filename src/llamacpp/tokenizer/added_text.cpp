#include "llamacpp/tokenizer/added_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "core/text.hpp"
#include "llamacpp/tokenizer/token_list.hpp"
#include "llamacpp/tokenizer/tokenizer_files.hpp"

namespace ballast::llamacpp {
namespace {

struct Replacement {
  std::string_view from, to;
};

constexpr std::array kCleanedSpaces = {Replacement{" .", "."},    Replacement{" ?", "?"},   Replacement{" !", "!"},
                                       Replacement{" ,", ","},    Replacement{" ' ", "'"},  Replacement{" n't", "n't"},
                                       Replacement{" 'm", "'m"},  Replacement{" 's", "'s"}, Replacement{" 've", "'ve"},
                                       Replacement{" 're", "'re"}};

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = from.empty() ? text.npos : text.find(from); at != text.npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

std::string without_broken_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t valid = valid_utf8_prefix(bytes);
    text.append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    text.append(kReplacementCharacter);
    bytes.remove_prefix(1);
  }
  return text;
}

// One code point of valid UTF-8.
std::uint32_t take_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  std::uint32_t code = size == 1 ? first : first & (0x7Fu >> size);
  for (std::size_t i = 1; i < size && i < text.size(); ++i)
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  text.remove_prefix(std::min(size, text.size()));
  return code;
}

// The byte behind a letter of byte-level BPE: most printable bytes are letters of their own number, and all others are
// the letters from 256 on, in order.
std::optional<char> byte_of_letter(std::uint32_t letter) {
  const auto is_own = [](std::uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
  };
  if (letter < 256) return is_own(letter) ? std::optional(static_cast<char>(letter)) : std::nullopt;
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    if (!is_own(byte) && next++ == letter) return static_cast<char>(byte);
  return std::nullopt;
}

std::string from_byte_level(std::string_view token) {
  std::string bytes;
  for (std::string_view rest = token; !rest.empty();) {
    const auto byte = byte_of_letter(take_code_point(rest));
    if (!byte) return std::string(token);
    bytes += *byte;
  }
  return without_broken_utf8(bytes);
}

std::string from_byte_fallback(std::string_view token) {
  if (!is_byte_token(token)) return std::string(token);
  unsigned byte = 0;
  std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return without_broken_utf8(std::string(1, static_cast<char>(byte)));
}

std::uint64_t count_in(const Json& decoder, std::string_view key) {
  const Json* value = decoder.find(key);
  return value && value->is_integer() && value->number() > 0 ? value->count() : 0;
}

std::string stripped(std::string_view token, const Json& decoder) {
  const std::string_view what = token_text(decoder.find("content"));
  if (what.empty()) return std::string(token);
  const std::uint64_t start = count_in(decoder, "start"), stop = count_in(decoder, "stop");
  for (std::uint64_t i = 0; i < start && token.starts_with(what); ++i) token.remove_prefix(what.size());
  for (std::uint64_t i = 0; i < stop && token.ends_with(what); ++i) token.remove_suffix(what.size());
  return std::string(token);
}

std::string from_metaspace(std::string_view token, const Json& decoder) {
  const std::string_view mark = token_text(decoder.find("replacement"));
  const bool keeps_spaces = token_text(decoder.find("prepend_scheme")) == "never";
  return replaced(token, mark, keeps_spaces ? " " : "");
}

std::string cleaned(std::string text) {
  for (const auto& [from, to] : kCleanedSpaces) text = replaced(text, from, to);
  return text;
}

// JSON is nested at most 64 deep, and so are these calls.
std::string decoded_by(std::string token, const Json& decoder) {
  const std::string_view type = token_text(decoder.find("type"));
  if (type == "ByteLevel") return from_byte_level(token);
  if (type == "ByteFallback") return from_byte_fallback(token);
  if (type == "Strip") return stripped(token, decoder);
  if (type == "Metaspace") return from_metaspace(token, decoder);
  if (type == "WordPiece") return is_true(decoder.find("cleanup")) ? cleaned(std::move(token)) : token;
  if (type == "Replace") {
    const Json* pattern = decoder.find("pattern");
    return replaced(token, token_text(pattern ? pattern->find("String") : nullptr),
                    token_text(decoder.find("content")));
  }
  if (const Json* steps = decoder.find("decoders"); type == "Sequence" && steps && steps->is_list())
    for (const Json& step : steps->list()) token = decoded_by(std::move(token), step);
  return token;
}

}  // namespace

std::string decoded_token(std::string_view token, const Json* decoder, bool cleans_spaces) {
  std::string text = decoder ? decoded_by(std::string(token), *decoder) : std::string(token);
  return cleans_spaces ? cleaned(std::move(text)) : text;
}

}  // namespace ballast::llamacpp
