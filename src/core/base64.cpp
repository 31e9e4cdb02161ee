#include "core/base64.hpp"

#include <array>
#include <cstdint>

namespace ballast {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint32_t kNoDigit = 64;  // not a digit: no digit has this bit

constexpr auto kDigits = [] {
  std::array<std::uint32_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::uint32_t i = 0; i < kAlphabet.size(); ++i) digits[static_cast<std::uint8_t>(kAlphabet[i])] = i;
  return digits;
}();

std::uint32_t digit(char c) { return kDigits[static_cast<std::uint8_t>(c)]; }

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  const auto byte = [&](std::size_t i) { return i < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i]) : 0; };
  for (std::size_t i = 0, at = 0; i < bytes.size(); i += 3, at += 4) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    const std::size_t characters = bytes.size() - i >= 3 ? 4 : bytes.size() - i + 1;
    for (std::size_t k = 0; k < characters; ++k) text[at + k] = kAlphabet[group >> (18 - 6 * k) & 63];
  }
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::byte> bytes(text.size() / 4 * 3);
  std::uint32_t all = 0;
  for (std::size_t at = 0, i = 0; at < text.size(); at += 4, i += 3) {
    const bool is_last = at + 4 == text.size();
    const auto value = [&](std::size_t k) { return is_last && k >= 4 - padding ? 0 : digit(text[at + k]); };
    const std::uint32_t d0 = value(0), d1 = value(1), d2 = value(2), d3 = value(3);
    all |= d0 | d1 | d2 | d3;
    const std::uint32_t group = d0 << 18 | d1 << 12 | d2 << 6 | d3;
    for (std::size_t k = 0; k < 3; ++k) bytes[i + k] = static_cast<std::byte>(group >> (16 - 8 * k));
  }
  if ((all & kNoDigit) != 0) return std::nullopt;
  bytes.erase(bytes.end() - static_cast<std::ptrdiff_t>(padding), bytes.end());
  return bytes;
}

}  // namespace ballast
