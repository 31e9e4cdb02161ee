#include "core/yaml_cursor.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/yaml_scalar.hpp"

namespace ballast {

void fail_yaml(const char* message) { throw Error(Errc::malformed, message); }

void require_yaml_depth(std::size_t depth) {
  if (depth > kMostYamlDepth) throw Error(Errc::limit, fmt::format("nested deeper than {}", kMostYamlDepth));
}

void require_yaml_keys(std::size_t count) {
  if (count > kMostYamlKeys) throw Error(Errc::limit, fmt::format("more than {} keys in a mapping", kMostYamlKeys));
}

YamlCursor::YamlCursor(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines_.push_back(line);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

std::size_t YamlCursor::skip_spaces(std::size_t column) const {
  while (column < line().size() && is_yaml_space(line()[column])) ++column;
  return column;
}

bool YamlCursor::ends_at(std::size_t column) const {
  const std::size_t next = skip_spaces(column);
  return next >= line().size() || (line()[next] == '#' && (next == 0 || is_yaml_space(line()[next - 1])));
}

std::size_t YamlCursor::indent() const {
  const std::size_t indent = line().find_first_not_of(' ');
  if (at(indent) == '\t') fail_yaml("a tab in the indentation");
  return indent;
}

std::string YamlCursor::read_quoted(std::size_t& column) {
  const char mark = line()[column++];
  std::string text;
  kept_ = 0;
  while (true) {
    if (column >= line().size()) {
      fold_quoted_lines(text, column);
      continue;
    }
    const char c = line()[column];
    if (c == mark && mark == '\'' && at(column + 1) == '\'') {
      text += c;
      column += 2;
    } else if (c == mark) {
      ++column;
      return text;
    } else if (c == '\\' && mark == '"' && column + 1 >= line().size()) {
      next_quoted_line(column);
      for (; skip_spaces(0) >= line().size(); next_quoted_line(column)) text += '\n';
      column = skip_spaces(0);
      kept_ = text.size();
    } else if (c == '\\' && mark == '"') {
      column = append_yaml_escape(text, line(), column + 1);
      kept_ = text.size();
    } else {
      text += c;
      ++column;
    }
  }
}

void YamlCursor::next_quoted_line(std::size_t& column) {
  next_line();
  column = 0;
  if (at_end()) fail_yaml("a quoted text does not end");
}

void YamlCursor::fold_quoted_lines(std::string& text, std::size_t& column) {
  while (text.size() > kept_ && is_yaml_space(text.back())) text.pop_back();
  std::size_t breaks = 0;
  do {
    next_quoted_line(column);
    ++breaks;
  } while (skip_spaces(0) >= line().size());
  text += breaks > 1 ? std::string(breaks - 1, '\n') : " ";
  kept_ = text.size();
  column = skip_spaces(0);
}

void YamlCursor::require_plain_start(std::size_t column, bool in_flow) const {
  constexpr std::string_view kNotPlain = ",[]{}#|>%@`";
  const char first = at(column);
  if (first == '&' || first == '*') throw Error(Errc::unsupported, "an anchor or an alias");
  if (first == '!') throw Error(Errc::unsupported, "a tag");
  const bool is_indicator = (first == '-' || first == '?' || first == ':') && space_at(column + 1);
  const bool is_question = first == '?' && in_flow;
  if (kNotPlain.find(first) != std::string_view::npos || is_indicator || is_question) {
    fail_yaml("a value cannot begin with this character");
  }
}

std::size_t YamlCursor::end_of_plain(std::size_t column, bool in_flow) const {
  constexpr std::string_view kFlowEnds = ",?[]{}";
  const auto ends_flow = [&](std::size_t i) { return in_flow && kFlowEnds.find(at(i)) != std::string_view::npos; };
  for (std::size_t i = column; i < line().size(); ++i) {
    const bool is_colon = line()[i] == ':' && (space_at(i + 1) || ends_flow(i + 1));
    const bool is_comment = line()[i] == '#' && i > 0 && is_yaml_space(line()[i - 1]);
    if (ends_flow(i) || is_colon || is_comment) return i;
  }
  return line().size();
}

}  // namespace ballast
