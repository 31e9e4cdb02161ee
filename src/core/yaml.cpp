#include "core/yaml.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/text.hpp"
#include "core/yaml_scalar.hpp"

namespace ballast {
namespace {

constexpr std::size_t kMostYamlDepth = 32;
constexpr std::size_t kMostYamlKeys = 1024;
constexpr std::size_t kLongestYamlKey = 1024;

bool is_yaml_space(char c) { return c == ' ' || c == '\t'; }

std::vector<std::string_view> yaml_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x7F || (byte < 0x20 && c != '\t' && c != '\n' && c != '\r');
  });
}

// Reads a document line by line. A node stands at a line and a column; its column is its indentation, also if something
// stands before it on the line ("- name: x" holds a mapping at column 2). A collection ends before the first line that
// is indented less than itself.
class YamlReader {
 public:
  explicit YamlReader(std::string_view text) : lines_(yaml_lines(text)) {}

  Json read() {
    try {
      skip_blank_lines();
      if (at_end()) return {};
      Json document = read_node(indent_here(), -1, 0);
      skip_blank_lines();
      if (!at_end()) fail("this does not belong to anything before it");
      return document;
    } catch (Error& error) {
      if (error.code() == Errc::malformed || error.code() == Errc::unsupported) {
        throw Error(error.code(), fmt::format("line {}: {}", std::min(line_ + 1, lines_.size()), error.message()));
      }
      throw;
    }
  }

 private:
  [[noreturn]] static void fail(const char* message) { throw Error(Errc::malformed, message); }

  bool at_end() const { return line_ >= lines_.size(); }
  std::string_view line() const { return lines_[line_]; }
  char at(std::size_t column) const { return column < line().size() ? line()[column] : '\n'; }
  bool space_at(std::size_t column) const { return column >= line().size() || is_yaml_space(line()[column]); }

  std::size_t indent_here() const {
    const std::size_t indent = line().find_first_not_of(' ');
    if (at(indent) == '\t') fail("a tab in the indentation");
    return indent;
  }

  std::size_t skip_spaces(std::size_t column) const {
    while (column < line().size() && is_yaml_space(line()[column])) ++column;
    return column;
  }

  // Nothing but a comment follows.
  bool ends_at(std::size_t column) const {
    const std::size_t next = skip_spaces(column);
    return next >= line().size() || (line()[next] == '#' && (next == 0 || is_yaml_space(line()[next - 1])));
  }

  void skip_blank_lines() {
    while (!at_end() && ends_at(0)) ++line_;
    if (!at_end() && (line().starts_with("---") || line().starts_with("...")) && space_at(3)) {
      throw Error(Errc::unsupported, "more than one document");
    }
  }

  bool is_item(std::size_t column) const { return at(column) == '-' && space_at(column + 1); }

  void expect_end_of_line(std::size_t column) {
    if (at(column) != '#' && !ends_at(column)) fail("something follows a value that has ended");
    ++line_;
  }

  // `parent` is the column of what the node is in, and -1 for a document.
  Json read_node(std::size_t column, std::ptrdiff_t parent, std::size_t depth) {
    if (depth > kMostYamlDepth) throw Error(Errc::limit, fmt::format("nested deeper than {}", kMostYamlDepth));
    if (is_item(column)) return read_sequence(column, depth);
    if (end_of_key(column)) return read_mapping(column, depth);
    return read_value(column, parent, depth);
  }

  Json read_sequence(std::size_t column, std::size_t depth) {
    Json::List items;
    for (std::size_t begin = column;;) {
      const std::size_t content = skip_spaces(begin + 1);
      if (ends_at(begin + 1)) {
        ++line_;
        items.push_back(read_below(column, false, depth));
      } else if (is_item(content) || end_of_key(content)) {
        items.push_back(read_node(content, static_cast<std::ptrdiff_t>(column), depth + 1));
      } else {
        items.push_back(read_value(content, static_cast<std::ptrdiff_t>(column), depth));
      }
      skip_blank_lines();
      if (at_end() || indent_here() != column || !is_item(column)) break;
      begin = column;
    }
    require_end_of_collection(column);
    return items;
  }

  Json read_mapping(std::size_t column, std::size_t depth) {
    Json mapping{Json::Members()};
    while (true) {
      const auto end = end_of_key(column);
      if (!end) fail("this is neither a key with a value nor part of what stands before it");
      const std::string key = read_key(column, *end);
      mapping.set(key, read_mapping_value(*end + 1, column, depth));
      if (mapping.members().size() > kMostYamlKeys) {
        throw Error(Errc::limit, fmt::format("more than {} keys in a mapping", kMostYamlKeys));
      }
      skip_blank_lines();
      if (at_end() || indent_here() != column || is_item(column)) break;
    }
    require_end_of_collection(column);
    return mapping;
  }

  void require_end_of_collection(std::size_t column) const {
    if (!at_end() && indent_here() > column) fail("indented deeper than what it belongs to");
  }

  Json read_mapping_value(std::size_t after_colon, std::size_t column, std::size_t depth) {
    if (ends_at(after_colon)) {
      ++line_;
      return read_below(column, true, depth);
    }
    return read_value(skip_spaces(after_colon), static_cast<std::ptrdiff_t>(column), depth);
  }

  // The value that stands in the lines below its key or its dash; null if there is none.
  Json read_below(std::size_t column, bool may_be_sequence_here, std::size_t depth) {
    skip_blank_lines();
    if (at_end()) return {};
    const std::size_t indent = indent_here();
    if (indent > column) return read_node(indent, static_cast<std::ptrdiff_t>(column), depth + 1);
    if (indent == column && may_be_sequence_here && is_item(column)) return read_sequence(column, depth + 1);
    return {};
  }

  // The column of the colon that makes a key of what stands at a column.
  std::optional<std::size_t> end_of_key(std::size_t column) const {
    if (at(column) == '?' && space_at(column + 1)) throw Error(Errc::unsupported, "a key that is not on one line");
    const bool is_quoted = at(column) == '"' || at(column) == '\'';
    std::size_t end = is_quoted ? end_of_quoted(column) : column;
    if (at(column) == '[' || at(column) == '{' || at(column) == '#') return std::nullopt;
    if (is_quoted) {
      end = skip_spaces(end);
      return at(end) == ':' && space_at(end + 1) ? std::optional(end) : std::nullopt;
    }
    const std::size_t limit = std::min(line().size(), column + kLongestYamlKey);
    for (; end < limit; ++end) {
      if (line()[end] == ':' && space_at(end + 1)) return end;
      if (line()[end] == '#' && end > column && is_yaml_space(line()[end - 1])) return std::nullopt;
    }
    return std::nullopt;
  }

  // The column behind the closing quote, or the end of the line if there is none on it.
  std::size_t end_of_quoted(std::size_t column) const {
    const char quote_mark = line()[column];
    for (std::size_t i = column + 1; i < line().size(); ++i) {
      if (line()[i] == '\\' && quote_mark == '"') {
        ++i;
      } else if (line()[i] == quote_mark) {
        if (quote_mark == '"' || at(i + 1) != '\'') return i + 1;
        ++i;
      }
    }
    return line().size();
  }

  std::string read_key(std::size_t column, std::size_t end) {
    const char first = at(column);
    if (first == '"' || first == '\'') {
      std::size_t after = column;
      return read_quoted(after);
    }
    require_plain_start(column, false);
    return std::string(trimmed_right(line().substr(column, end - column)));
  }

  // A value that begins on this line. Its further lines are indented deeper than `parent`.
  Json read_value(std::size_t column, std::ptrdiff_t parent, std::size_t depth) {
    const char first = at(column);
    if (first == '|' || first == '>') return read_block_scalar(column, parent);
    if (first == '[' || first == '{') {
      Json value = read_flow(column, depth + 1);
      expect_end_of_line(column);
      return value;
    }
    if (first == '"' || first == '\'') {
      std::string text = read_quoted(column);
      expect_end_of_line(column);
      return text;
    }
    require_plain_start(column, false);
    return read_plain_lines(column, parent);
  }

  void require_plain_start(std::size_t column, bool in_flow) const {
    constexpr std::string_view kNotPlain = ",[]{}#|>%@`";
    const char first = at(column);
    if (first == '&' || first == '*') throw Error(Errc::unsupported, "an anchor or an alias");
    if (first == '!') throw Error(Errc::unsupported, "a tag");
    const bool is_indicator = (first == '-' || first == '?' || first == ':') && (in_flow || space_at(column + 1));
    const bool is_dash_word = in_flow && first != '?' && !space_at(column + 1);
    if (kNotPlain.find(first) != std::string_view::npos || (is_indicator && !is_dash_word)) {
      fail("a value cannot begin with this character");
    }
  }

  // Where a plain scalar ends on this line.
  std::size_t end_of_plain(std::size_t column, bool in_flow) const {
    constexpr std::string_view kFlowEnds = ",?[]{}";
    for (std::size_t i = column; i < line().size(); ++i) {
      const char c = line()[i];
      const bool ends_flow = in_flow && kFlowEnds.find(c) != std::string_view::npos;
      const bool is_colon =
          c == ':' && (space_at(i + 1) || (in_flow && kFlowEnds.find(at(i + 1)) != std::string_view::npos));
      const bool is_comment = c == '#' && i > 0 && is_yaml_space(line()[i - 1]);
      if (ends_flow || is_colon || is_comment) return i;
    }
    return line().size();
  }

  Json read_plain_lines(std::size_t column, std::ptrdiff_t parent) {
    std::string text;
    for (std::size_t breaks = 0;;) {
      const std::size_t end = end_of_plain(column, false);
      if (at(end) == ':') fail("a colon that makes a key, where a value stands");
      const std::string_view part = trimmed_right(line().substr(column, end - column));
      if (!text.empty()) text += breaks > 1 ? std::string(breaks - 1, '\n') : " ";
      text += part;
      const bool has_comment = end < line().size();
      ++line_;
      for (breaks = 1; !at_end() && skip_spaces(0) >= line().size(); ++breaks) ++line_;
      if (has_comment || at_end()) break;
      column = skip_spaces(0);
      const bool is_deeper = static_cast<std::ptrdiff_t>(column) > parent;
      const bool is_document = column == 0 && (line().starts_with("---") || line().starts_with("...")) && space_at(3);
      if (!is_deeper || line()[column] == '#' || is_document) break;
    }
    return resolve_plain_scalar(text);
  }

  // Leaves `column` behind the closing quote. Lines are folded: a line break is a space, an empty line a line break.
  std::string read_quoted(std::size_t& column) {
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

  void next_quoted_line(std::size_t& column) {
    ++line_;
    column = 0;
    kept_ = 0;
    if (at_end()) fail("a quoted text does not end");
  }

  void fold_quoted_lines(std::string& text, std::size_t& column) {
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

  Json read_block_scalar(std::size_t column, std::ptrdiff_t parent) {
    const BlockScalarStyle style = read_block_style(line().substr(column));
    ++line_;
    const std::size_t least = static_cast<std::size_t>(std::max<std::ptrdiff_t>(parent + 1, 1));
    std::size_t indent = style.indent > 0 ? least - 1 + style.indent : least;
    if (style.indent == 0) {
      for (std::size_t i = line_; i < lines_.size(); ++i) {
        const std::size_t spaces = std::min(lines_[i].find_first_not_of(' '), lines_[i].size());
        indent = std::max(indent, spaces);
        if (spaces < lines_[i].size()) break;
      }
    }
    std::vector<std::string_view> content;
    for (; !at_end(); ++line_) {
      const std::size_t spaces = std::min(line().find_first_not_of(' '), line().size());
      if (spaces < indent && spaces < line().size()) break;
      content.push_back(line().size() > indent ? line().substr(indent) : std::string_view());
    }
    return join_block_scalar(style, content);
  }

  void skip_flow_space(std::size_t& column) {
    while (true) {
      column = skip_spaces(column);
      if (column < line().size() && !ends_at(column)) return;
      ++line_;
      column = 0;
      if (at_end()) fail("a list in brackets does not end");
    }
  }

  Json read_flow(std::size_t& column, std::size_t depth) {
    if (depth > kMostYamlDepth) throw Error(Errc::limit, fmt::format("nested deeper than {}", kMostYamlDepth));
    if (at(column) == '[') return read_flow_list(column, depth);
    if (at(column) == '{') return read_flow_mapping(column, depth);
    if (at(column) == '"' || at(column) == '\'') return read_quoted(column);
    require_plain_start(column, true);
    return read_flow_plain(column);
  }

  Json read_flow_plain(std::size_t& column) {
    std::string text;
    while (true) {
      const std::size_t end = end_of_plain(column, true);
      const std::string_view part = trimmed_right(line().substr(column, end - column));
      if (!text.empty() && !part.empty()) text += ' ';
      text += part;
      column = end;
      if (end < line().size()) break;
      skip_flow_space(column);
      if (end_of_plain(column, true) == column) break;
    }
    return resolve_plain_scalar(text);
  }

  bool is_flow_colon(std::size_t column) const {
    constexpr std::string_view kEnds = ",[]{}";
    return at(column) == ':' && (space_at(column + 1) || kEnds.find(at(column + 1)) != std::string_view::npos);
  }

  Json read_flow_list(std::size_t& column, std::size_t depth) {
    Json::List items;
    ++column;
    while (true) {
      skip_flow_space(column);
      if (at(column) == ']') break;
      Json item = read_flow(column, depth + 1);
      skip_flow_space(column);
      if (is_flow_colon(column)) item = Json::Members{{key_text(item), read_flow_value(column, depth)}};
      items.push_back(std::move(item));
      if (!skip_flow_comma(column, ']')) break;
    }
    ++column;
    return items;
  }

  Json read_flow_mapping(std::size_t& column, std::size_t depth) {
    Json mapping{Json::Members()};
    ++column;
    while (true) {
      skip_flow_space(column);
      if (at(column) == '}') break;
      const bool is_quoted = at(column) == '"' || at(column) == '\'';
      const std::string key = key_text(read_flow(column, depth + 1));
      skip_flow_space(column);
      const bool has_value = is_flow_colon(column) || (is_quoted && at(column) == ':');
      mapping.set(key, has_value ? read_flow_value(column, depth) : Json());
      if (mapping.members().size() > kMostYamlKeys) {
        throw Error(Errc::limit, fmt::format("more than {} keys in a mapping", kMostYamlKeys));
      }
      if (!skip_flow_comma(column, '}')) break;
    }
    ++column;
    return mapping;
  }

  // Behind a colon.
  Json read_flow_value(std::size_t& column, std::size_t depth) {
    ++column;
    skip_flow_space(column);
    constexpr std::string_view kEnds = ",]}";
    if (kEnds.find(at(column)) != std::string_view::npos) return {};
    Json value = read_flow(column, depth + 1);
    return value;
  }

  // False at the closing bracket.
  bool skip_flow_comma(std::size_t& column, char closing) {
    skip_flow_space(column);
    if (at(column) == closing) return false;
    if (at(column) != ',') fail("no comma between two values in brackets");
    ++column;
    return true;
  }

  static std::string key_text(const Json& key) {
    if (key.is_list() || key.is_object()) throw Error(Errc::unsupported, "a key that is not a scalar");
    return key.is_text() ? key.text() : to_string(key);
  }

  std::vector<std::string_view> lines_;
  std::size_t line_ = 0;
  std::size_t kept_ = 0;  // how much of a quoted text stays, even if it ends in spaces
};

}  // namespace

Json parse_yaml(std::string_view text) {
  if (valid_utf8_prefix(text) != text.size()) throw Error(Errc::malformed, "the text is not UTF-8");
  if (has_control_character(text)) throw Error(Errc::malformed, "a control character in the text");
  if (text.starts_with('%')) throw Error(Errc::unsupported, "a directive");
  return YamlReader(text).read();
}

}  // namespace ballast
