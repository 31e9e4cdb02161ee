// TokenList: a vocabulary as a GGUF file has it: text, score and type by id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::llamacpp {

// The numbers are those of GGUF.
enum class TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct TokenList {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> types;

  // `size` tokens that nobody uses: [PAD0], [PAD1], …
  static TokenList unused(std::size_t size);

  std::size_t size() const noexcept { return texts.size(); }
  void set(std::size_t id, std::string text, float score, TokenType type);
  void append(std::string text, float score, TokenType type);
};

inline constexpr float kUnusedScore = -10000, kAddedScore = -1000;

std::string padding_token(std::size_t id);  // "[PAD7]"

// Some models have control tokens that they do not call special.
bool looks_special(std::string_view token);
// ▁ → space
std::string with_spaces(std::string_view token);
// <0x0A>
bool is_byte_token(std::string_view token);

}  // namespace ballast::llamacpp
