#include "llamacpp/tokenizer/added_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"
#include "llamacpp/tokenizer/token_list.hpp"

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

// Longer than any token, and short enough that a file of them fits into memory.
constexpr std::size_t kLongestToken = 64 << 10;
constexpr std::size_t kMostSteps = 64;
constexpr std::uint64_t kMostWork = 256 << 20;

void require_short(std::size_t size) {
  if (size > kLongestToken)
    throw Error(Errc::limit, fmt::format("an added token has more than {} bytes if it is decoded", kLongestToken));
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = from.empty() ? text.npos : text.find(from); at != text.npos; at = text.find(from)) {
    require_short(result.size() + at + to.size());
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

constexpr bool is_own_letter(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

// The bytes that are the letters from 256 on, in order.
constexpr auto kOtherBytes = [] {
  std::array<char, 68> bytes{};
  std::size_t next = 0;
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    if (!is_own_letter(byte)) bytes[next++] = static_cast<char>(byte);
  return bytes;
}();

// The byte behind a letter of byte-level BPE: most printable bytes are letters of their own number.
std::optional<char> byte_of_letter(std::uint32_t letter) {
  if (letter < 256) return is_own_letter(letter) ? std::optional(static_cast<char>(letter)) : std::nullopt;
  return letter - 256 < kOtherBytes.size() ? std::optional(kOtherBytes[letter - 256]) : std::nullopt;
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

std::string stripped(std::string_view token, const DecoderStep& step) {
  if (step.from.empty()) return std::string(token);
  for (std::uint64_t i = 0; i < step.start && token.starts_with(step.from); ++i) token.remove_prefix(step.from.size());
  for (std::uint64_t i = 0; i < step.stop && token.ends_with(step.from); ++i) token.remove_suffix(step.from.size());
  return std::string(token);
}

std::string cleaned(std::string text) {
  for (const auto& [from, to] : kCleanedSpaces) text = replaced(text, from, to);
  return text;
}

}  // namespace

AddedTokenDecoder::AddedTokenDecoder(const TokenizerFiles& files) : files_(files) {
  if (const Json* decoder = files.part("decoder")) add_steps(*decoder);
  if (is_true(files.setting("clean_up_tokenization_spaces"))) add_step({DecoderStep::Kind::clean_up});
}

// JSON is nested at most 64 deep, and so are these calls.
void AddedTokenDecoder::add_steps(const Json& decoder) {
  using Kind = DecoderStep::Kind;
  const std::string_view type = token_text(decoder.find("type"));
  if (type == "ByteLevel") add_step({Kind::byte_level});
  if (type == "ByteFallback") add_step({Kind::byte_fallback});
  if (type == "WordPiece" && is_true(decoder.find("cleanup"))) add_step({Kind::clean_up});
  if (type == "Strip") {
    const std::string_view what = token_text(decoder.find("content"));
    add_step({Kind::strip, what, {}, count_in(decoder, "start"), count_in(decoder, "stop")});
  }
  if (type == "Metaspace") {
    const bool keeps_spaces = token_text(decoder.find("prepend_scheme")) == "never";
    add_step({Kind::replace, token_text(decoder.find("replacement")), keeps_spaces ? " " : ""});
  }
  if (type == "Replace") {
    const Json* pattern = decoder.find("pattern");
    const std::string_view from = token_text(pattern ? pattern->find("String") : nullptr);
    add_step({Kind::replace, from, token_text(decoder.find("content"))});
  }
  if (const Json* parts = decoder.find("decoders"); type == "Sequence" && parts && parts->is_list())
    for (const Json& part : parts->list()) add_steps(part);
}

void AddedTokenDecoder::add_step(DecoderStep step) {
  if (steps_.size() == kMostSteps)
    throw files_.error(Errc::limit, fmt::format("the decoder has more than {} steps", kMostSteps), "tokenizer.json");
  steps_.push_back(step);
}

void AddedTokenDecoder::charge(std::uint64_t work) {
  work_ += work;
  if (work_ > kMostWork)
    throw files_.error(Errc::limit, "decoding the added tokens takes more work than in any real tokenizer",
                       "tokenizer.json");
}

std::string AddedTokenDecoder::after(const DecoderStep& step, std::string token) {
  // Looking for a long text takes time at every byte.
  charge(token.size() * std::max<std::uint64_t>(1, std::min(step.from.size(), token.size())));
  switch (step.kind) {
    case DecoderStep::Kind::byte_level: return from_byte_level(token);
    case DecoderStep::Kind::byte_fallback: return from_byte_fallback(token);
    case DecoderStep::Kind::strip: return stripped(token, step);
    case DecoderStep::Kind::replace: return replaced(token, step.from, step.to);
    case DecoderStep::Kind::clean_up: return cleaned(std::move(token));
  }
  return token;
}

std::string AddedTokenDecoder::decoded(std::string_view token) try {
  require_short(token.size());
  std::string text(token);
  for (const DecoderStep& step : steps_) {
    text = after(step, std::move(text));
    require_short(text.size());
  }
  charge(text.size());
  return text;
} catch (Error& error) {
  throw error.in(files_.folder().path("tokenizer.json")).hint("no published tokenizer does that; fetch it again");
}

}  // namespace ballast::llamacpp
