// Reverses a regular expression and its replacement.
#include <ballast/transform.hpp>

#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {
namespace {

// A part of an expression, or of a replacement: text, or a group.
struct Token {
  std::string text;  // a literal, or what is inside the parentheses
  int group = 0;     // the number of the group, from 1
};

void add_literal(std::vector<Token>& tokens, char c) {
  if (tokens.empty() || tokens.back().group != 0) tokens.emplace_back();
  tokens.back().text += c;
}

// The text between parentheses, which must not contain others; moves `at` to the closing one.
std::optional<std::string> group_at(std::string_view pattern, std::size_t& at) {
  std::string inside;
  for (++at; at < pattern.size(); ++at) {
    if (pattern[at] == ')') return inside;
    if (pattern[at] == '(' || (inside.empty() && pattern[at] == '?')) return std::nullopt;
    inside += pattern[at];
    if (pattern[at] == '\\' && at + 1 < pattern.size()) inside += pattern[++at];
  }
  return std::nullopt;
}

// Nothing if the expression is more than a sequence of text and groups.
std::optional<std::vector<Token>> tokens_of_pattern(std::string_view pattern) {
  std::vector<Token> tokens;
  int groups = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '(') {
      auto inside = group_at(pattern, i);
      if (!inside) return std::nullopt;
      tokens.push_back({std::move(*inside), ++groups});
    } else if (c == '\\') {
      const bool is_punctuation = i + 1 < pattern.size() && std::ispunct(static_cast<unsigned char>(pattern[i + 1]));
      if (!is_punctuation) return std::nullopt;
      add_literal(tokens, pattern[++i]);
    } else if (std::string_view(".*+?[]|{})^$").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      add_literal(tokens, c);
    }
  }
  return tokens;
}

std::optional<std::vector<Token>> tokens_of_replacement(std::string_view replacement) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '\\' || i + 1 == replacement.size()) {
      add_literal(tokens, replacement[i]);
      continue;
    }
    const char next = replacement[++i];
    if (next == '0') return std::nullopt;
    if (next >= '1' && next <= '9')
      tokens.push_back({{}, next - '0'});
    else
      add_literal(tokens, next);
  }
  return tokens;
}

std::string escaped_for_replacement(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return escaped;
}

}  // namespace

std::optional<RenameRule> reversed(const RenameRule& rule) {
  std::string_view pattern = rule.pattern;
  const bool at_begin = pattern.starts_with('^'), at_end = pattern.ends_with('$') && !pattern.ends_with("\\$");
  pattern = pattern.substr(at_begin ? 1 : 0);
  if (at_end && !pattern.empty()) pattern.remove_suffix(1);
  const auto from = tokens_of_pattern(pattern), to = tokens_of_replacement(rule.replacement);
  if (!from || !to || (to->empty() && !at_begin && !at_end)) return std::nullopt;

  RenameRule back;
  std::vector<int> places;  // the numbers of the groups, in the order of the replacement
  for (const Token& token : *to) {
    if (token.group == 0) {
      back.pattern += re2::RE2::QuoteMeta(token.text);
      continue;
    }
    const auto group = std::ranges::find(*from, token.group, &Token::group);
    if (group == from->end()) return std::nullopt;
    places.push_back(token.group);
    back.pattern += "(" + group->text + ")";
  }
  for (const Token& token : *from) {
    if (token.group == 0) {
      back.replacement += escaped_for_replacement(token.text);
      continue;
    }
    if (std::ranges::count(places, token.group) != 1) return std::nullopt;
    back.replacement += "\\" + std::to_string(std::ranges::find(places, token.group) - places.begin() + 1);
  }
  if (at_begin) back.pattern.insert(0, "^");
  if (at_end) back.pattern += "$";
  return back;
}

}  // namespace ballast
