#include "formats/pickle/hidden.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "formats/pickle/literals.hpp"

namespace ballast::pickle {
namespace {

constexpr std::size_t kShortestText = 8;  // of an encoded pickle that does anything

// The value of every byte as a digit of an alphabet. kSpace is skipped; kNoDigit means that the text is not encoded
// this way.
constexpr std::uint8_t kNoDigit = 255, kSpace = 254;
using Digits = std::array<std::uint8_t, 256>;

constexpr Digits digits_of(std::string_view alphabet, std::string_view synonyms) {
  Digits digits{};
  digits.fill(kNoDigit);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    digits[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < synonyms.size(); ++i)
    digits[static_cast<unsigned char>(synonyms[i])] = static_cast<std::uint8_t>(alphabet.size() - synonyms.size() + i);
  for (const char c : {' ', '\t', '\r', '\n'}) digits[static_cast<unsigned char>(c)] = kSpace;
  return digits;
}

constexpr Digits kHex = digits_of("0123456789abcdef", "ABCDEF");
constexpr Digits kBase64 =
    digits_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_");  // both dialects

// Decodes digits of `bits` each, the highest first. Bits that do not fill a byte are dropped.
std::optional<std::string> decode(std::string_view text, const Digits& digits, unsigned bits) {
  std::string out;
  out.reserve(text.size() * bits / 8);
  std::uint32_t pending = 0;
  unsigned pending_bits = 0;
  for (const char c : text) {
    const std::uint8_t digit = digits[static_cast<unsigned char>(c)];
    if (digit == kSpace) continue;
    if (digit == kNoDigit) return std::nullopt;
    pending = pending << bits | digit;
    pending_bits += bits;
    if (pending_bits < 8) continue;
    pending_bits -= 8;
    out += static_cast<char>(pending >> pending_bits & 0xFF);
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return decode(text, kHex, 4);
}

std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('=')) text.remove_suffix(1);
  return decode(text, kBase64, 6);
}

// Decodes b'\x80\x04...', as Python prints bytes.
std::optional<std::string> from_escapes(std::string_view text) {
  const auto first = text.find("\\x80\\x0");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  return unescape_bytes(text.substr(0, text.find_last_not_of("'\"") + 1));
}

struct LengthBytes {
  char opcode;
  std::uint8_t bytes;
};
constexpr LengthBytes kLengthBytes[] = {{'U', 1},    {'T', 4},    {'X', 4},    {'C', 1},   {'B', 4},
                                        {'\x8c', 1}, {'\x8d', 8}, {'\x8e', 8}, {'\x96', 8}};

}  // namespace

bool begins_with_proto(std::string_view bytes) {
  return bytes.size() >= 3 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

bool may_name_a_global(std::string_view bytes) {
  // Looks for GLOBAL or INST with its two lines, or for STACK_GLOBAL. It does not ask for STOP: Python runs all that
  // comes before it, even if it is missing.
  if (bytes.find('\x93') != std::string_view::npos) return true;
  const auto first_line = bytes.find('\n');
  return first_line != std::string_view::npos && bytes.find('\n', first_line + 1) != std::string_view::npos &&
         bytes.find_first_of("ci") < bytes.rfind('\n');
}

std::optional<std::string> from_latin1(std::string_view text) {
  if (text.find_first_of("\xC2\xC3") == std::string_view::npos) return std::nullopt;  // all is ASCII
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      out += text[i];
    } else if (lead == 0xC2 || lead == 0xC3) {
      if (i + 1 == text.size()) break;  // the text was cut here
      out += static_cast<char>((lead & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F));
    } else {
      return std::nullopt;
    }
  }
  return out;
}

bool begins_like_a_file(std::string_view bytes, FileTest is_file) {
  return is_file != nullptr && is_file(std::as_bytes(std::span(bytes.substr(0, kFileTestBytes))));
}

std::vector<std::string> readings_of(std::string_view text, FileTest is_file) {
  std::vector<std::string> readings;
  if (text.size() < kShortestText) return readings;
  for (const auto& read : {from_hex, from_base64, from_latin1, from_escapes}) {
    auto bytes = read(text);
    if (bytes && (begins_with_proto(*bytes) || may_name_a_global(*bytes) || begins_like_a_file(*bytes, is_file)))
      readings.push_back(std::move(*bytes));
  }
  return readings;
}

std::optional<std::uint64_t> content_offset(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.is_far) return node.offset;
  std::array<char, 1> opcode{};
  graph.source()->read(node.offset, std::as_writable_bytes(std::span(opcode)));
  const auto found = std::ranges::find(kLengthBytes, opcode[0], &LengthBytes::opcode);
  if (found == std::end(kLengthBytes)) return std::nullopt;
  return node.offset + 1 + found->bytes;
}

}  // namespace ballast::pickle
