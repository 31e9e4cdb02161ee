#include "layout/pattern.hpp"

#include <re2/re2.h>
#include <ballast/error.hpp>

#include <algorithm>
#include <utility>

#include "core/text.hpp"

namespace ballast {
namespace {

bool is_word(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && std::ranges::all_of(text, is_letter);
}

struct Piece {
  std::string literal, place;  // the text before a placeholder, and the placeholder; the last piece has none
};

std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  while (true) {
    const std::size_t open = text.find('{');
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    const bool is_closed = close != std::string_view::npos;
    const std::string_view word = is_closed ? text.substr(open + 1, close - open - 1) : std::string_view();
    if (!is_word(word)) {
      throw Error(Errc::invalid_argument, "the pattern " + quote(text) + " has a brace that is no place")
          .hint("a place is a word in braces, such as {x}");
    }
    pieces.push_back({std::string(text.substr(0, open)), std::string(word)});
    text.remove_prefix(close + 1);
  }
  pieces.push_back({std::string(text), {}});
  return pieces;
}

std::string expression_of(std::string_view literal, NamePattern::Wildcards wildcards) {
  if (wildcards == NamePattern::Wildcards::no) return re2::RE2::QuoteMeta(std::string(literal));
  std::string expression;
  for (const char c : literal) {
    if (c == '*')
      expression += ".*";
    else if (c == '?')
      expression += '.';
    else
      expression += re2::RE2::QuoteMeta(std::string(1, c));
  }
  return expression;
}

}  // namespace

NamePattern::NamePattern(std::string_view text, const std::set<std::string, std::less<>>& numbers, Wildcards wildcards)
    : text_(text) {
  std::string expression;
  for (const Piece& piece : pieces_of(text)) {
    literals_.push_back(piece.literal);
    expression += expression_of(piece.literal, wildcards);
    if (piece.place.empty()) continue;
    places_.push_back(piece.place);
    expression += numbers.contains(piece.place) ? "([0-9]{1,9})" : "(.+)";
  }
  re2::RE2::Options options;
  options.set_dot_nl(true);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // names are bytes
  options.set_log_errors(false);
  expression_ = std::make_unique<re2::RE2>(expression, options);
  if (!expression_->ok())
    throw Error(Errc::invalid_argument, "the pattern " + quote(text) + " is too long: " + expression_->error());
}

NamePattern::~NamePattern() = default;
NamePattern::NamePattern(NamePattern&&) noexcept = default;
NamePattern& NamePattern::operator=(NamePattern&&) noexcept = default;

std::optional<NamePattern::Places> NamePattern::match(std::string_view name) const {
  std::vector<re2::StringPiece> found(places_.size());
  std::vector<re2::RE2::Arg> arguments;
  std::vector<const re2::RE2::Arg*> pointers;
  arguments.reserve(found.size());
  for (re2::StringPiece& piece : found) {
    arguments.emplace_back(&piece);
    pointers.push_back(&arguments.back());
  }
  const re2::StringPiece whole(name.data(), name.size());
  if (!re2::RE2::FullMatchN(whole, *expression_, pointers.data(), static_cast<int>(pointers.size())))
    return std::nullopt;
  Places places;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto [place, is_new] = places.emplace(places_[i], found[i].as_string());
    if (!is_new && place->second != found[i]) return std::nullopt;  // the same word must stand for the same text
  }
  return places;
}

std::string NamePattern::fill(const Places& places) const {
  std::string name;
  for (std::size_t i = 0; i < places_.size(); ++i) name += literals_[i] + places.find(places_[i])->second;
  return name + literals_.back();
}

std::set<std::string, std::less<>> places_in(std::string_view pattern) {
  std::set<std::string, std::less<>> words;
  for (Piece& piece : pieces_of(pattern)) {
    if (!piece.place.empty()) words.insert(std::move(piece.place));
  }
  return words;
}

}  // namespace ballast
