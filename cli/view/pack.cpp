#include "pack.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>

#include <sys/random.h>
#include <zlib.h>
#include <ballast/error.hpp>
#include <ballast/hash.hpp>

namespace ballast::cli {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

char byte_of(char high, char low) { return static_cast<char>(kHexDigits.find(high) << 4 | kHexDigits.find(low)); }

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string packed(std::string_view text) {
  // zlib counts in 32 bits. No document comes near that: a hundred thousand tensors take some ten megabytes.
  if (text.size() > std::numeric_limits<std::uint32_t>::max() / 2)
    throw Error(Errc::limit, "there is too much to show in one page").hint("take a part of the tensors");
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::string bytes(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                static_cast<uLong>(text.size()), Z_BEST_COMPRESSION) != Z_OK)
    throw std::bad_alloc();
  bytes.resize(size);
  return base64(bytes);
}

std::string sha256_base64(std::string_view text) {
  StateDict one;
  one.insert("", Tensor::from_bytes(DType::u8, {text.size()}, std::as_bytes(std::span(text))));
  const std::string hex = hash(Checkpoint(std::move(one)), {.threads = 1}).tensors[0].sha256.value();
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes += byte_of(hex[i], hex[i + 1]);
  return base64(bytes);
}

std::string random_hex(std::size_t count) {
  std::array<unsigned char, 64> bytes;
  const ssize_t got = getrandom(bytes.data(), std::min(count, bytes.size()), 0);
  if (got != static_cast<ssize_t>(count)) throw Error(Errc::io, "the system gives no random numbers").of_system(errno);
  std::string text;
  for (const unsigned char byte : std::span(bytes).first(count)) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace ballast::cli
