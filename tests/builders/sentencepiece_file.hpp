// SentencePieceFile: a SentencePiece model in a line or two, right or wrong, written without the library under test.
//
//   SentencePieceFile().piece("<unk>", 0, 2).piece("▁a", -1)
//   SentencePieceFile().piece("a", 0).raw("\x0a\xff")             a field that ends past the file
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ballast::test {

class SentencePieceFile {
 public:
  static std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
  }
  static std::string number(std::uint64_t field, std::uint64_t value) { return varint(field << 3) + varint(value); }
  static std::string bytes(std::uint64_t field, std::string_view value) {
    return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
  }
  static std::string real(std::uint64_t field, float value) {
    std::string text = varint(field << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(bits >> shift);
    return text;
  }

  // Types: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
  SentencePieceFile& piece(std::string_view text, float score = 0, std::uint64_t type = 1) {
    return raw(bytes(1, bytes(1, text) + real(2, score) + (type == 1 ? "" : number(3, type))));
  }
  SentencePieceFile& trainer(std::uint64_t model_type) { return raw(bytes(2, number(3, model_type))); }
  SentencePieceFile& normalizer(std::string_view charsmap, bool adds_prefix, bool removes_spaces) {
    return raw(bytes(3, bytes(1, "nmt_nfkc") + (charsmap.empty() ? "" : bytes(2, charsmap)) + number(3, adds_prefix) +
                            number(4, removes_spaces)));
  }
  SentencePieceFile& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }

  const std::string& text() const { return text_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(text_)); }

 private:
  std::string text_;
};

}  // namespace ballast::test
