#include "llamacpp/tokenizer/token_list.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ballast::llamacpp {
namespace {

struct Brackets {
  std::string_view begin, end;
};

constexpr std::array<std::string_view, 4> kSpecialTexts = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
constexpr std::array kSpecialBrackets = {Brackets{"<|", "|>"}, Brackets{"<｜", "｜>"}, Brackets{"<unused", ">"}};

constexpr std::string_view kSpaceMark = "▁";

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

std::string padding_token(std::size_t id) { return "[PAD" + std::to_string(id) + "]"; }

TokenList TokenList::unused(std::size_t size) {
  TokenList list;
  list.texts.reserve(size);
  for (std::size_t i = 0; i < size; ++i) list.texts.push_back(padding_token(i));
  list.scores.assign(size, kUnusedScore);
  list.types.assign(size, static_cast<std::int32_t>(TokenType::unused));
  return list;
}

void TokenList::set(std::size_t id, std::string text, float score, TokenType type) {
  texts[id] = std::move(text);
  scores[id] = score;
  types[id] = static_cast<std::int32_t>(type);
}

void TokenList::append(std::string text, float score, TokenType type) {
  texts.push_back(std::move(text));
  scores.push_back(score);
  types.push_back(static_cast<std::int32_t>(type));
}

bool looks_special(std::string_view token) {
  return std::ranges::find(kSpecialTexts, token) != kSpecialTexts.end() ||
         std::ranges::any_of(kSpecialBrackets, [&](const Brackets& brackets) {
           return token.starts_with(brackets.begin) && token.ends_with(brackets.end);
         });
}

std::string with_spaces(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size();) {
    const bool is_mark = token.substr(i).starts_with(kSpaceMark);
    text += is_mark ? ' ' : token[i];
    i += is_mark ? kSpaceMark.size() : 1;
  }
  return text;
}

bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && is_hex(token[3]) && is_hex(token[4]) && token[5] == '>';
}

}  // namespace ballast::llamacpp
